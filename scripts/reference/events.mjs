import { controlFrames, journalFrames } from './events-table.mjs';
import { code, page, table } from './markdown.mjs';

const section = ([type, [says, keys]]) =>
  `### ${type}\n\n${says[0].toUpperCase()}${says.slice(1)}.\n\n${table(
    ['key of `data`', 'meaning'],
    Object.entries(keys).map(([key, meaning]) => [code(key), meaning]),
  )}`;

export const eventsPage = () =>
  page('Events', '`src/actors/journal/event-types.ts` and `scripts/reference/events-table.mjs`', [
    `\`\`\`sh
curl -N -H "Authorization: Bearer $(agent token)" http://127.0.0.1:8080/stream/bd-a1b2
\`\`\`

\`\`\`
id: 12
event: tool_start
data: {"type":"tool_start","task_id":"bd-a1b2","attempt":1,"seq":12,"timestamp":"…","data":{"call_id":"…","tool":"bash",…}}
\`\`\``,
    '`GET /stream/<task_id>` sends the frames of one task, `GET /stream` those of all tasks. A frame is one server-sent event;\n' +
      'its data is JSON with these keys:',
    table(
      ['key', 'meaning'],
      [
        [code('type'), 'the type of the frame'],
        [code('task_id'), 'the task'],
        [code('attempt'), 'number of the attempt; 0 before the first'],
        [code('seq'), 'number of the journal entry; rises over all tasks'],
        [code('timestamp'), 'when it happened'],
        [code('data'), 'more, by type'],
      ],
    ),
    'To miss nothing, send the last id that you saw as the header `Last-Event-ID` or as `?after=<id>`. Without it, the stream of\n' +
      'a running task starts at its latest snapshot, and the stream of a finished task at its beginning. The stream of one task\n' +
      'ends with `stream_closed`. A key that has nothing to say may be absent. Ignore types and keys that you do not know.',
    `## Frames of the journal\n\n${journalFrames.map(section).join('\n\n')}`,
    `## Frames of the stream\n\nThey carry no id, since nothing can be resumed from them. A \`stream_closed\` without an id ends the\nstream of a task that is over.\n\n${controlFrames.map(section).join('\n\n')}`,
  ]);
