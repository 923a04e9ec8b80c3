import { isJsonObject, textOrEmpty } from '../../../machines/json.ts';
import { failingLines, lastLines } from '../../../machines/last-lines.ts';
import { describeFailure } from '../../../machines/message-of.ts';
import { finalStatuses } from '../../../machines/task.ts';
import type { Frame } from '../../client/client.ts';
import { goOnWords, parkedWords, statusWords } from '../../words/state-words.ts';
import { oneLine, stripControls } from '../safe-text.ts';
import { joined, type Styled, styled, type Text } from '../styled.ts';
import { durationText } from '../times.ts';

type FrameData = Frame['data'];

const target = (data: FrameData, width: number): string => {
  try {
    const args: unknown = JSON.parse(textOrEmpty(data['arguments']));
    if (!isJsonObject(args)) return '';
    const { path, command, pattern, summary } = args;
    return oneLine(textOrEmpty(command ?? path ?? pattern ?? summary), width);
  } catch {
    return '';
  }
};

/** A tool call in a few words: `bash npm test`. */
export const callText = ({ data }: Frame): string =>
  `${textOrEmpty(data['tool'])} ${target(data, 80)}`.trimEnd();

const failureText = (data: FrameData): string => {
  const { error } = data;
  if (!isJsonObject(error)) return 'failed';
  const facts = isJsonObject(error['facts']) ? error['facts'] : {};
  const [code, message] = [textOrEmpty(error['code']), textOrEmpty(error['message'])];
  return `failed: ${stripControls(describeFailure({ code, message, facts }))}`;
};

/** What a provider says in Retry-After: the task is `pausing` meanwhile. */
const wantedPause = ({ error }: FrameData): string => {
  const facts = isJsonObject(error) && isJsonObject(error['facts']) ? error['facts'] : {};
  const ms = facts['retry_after_ms'];
  return typeof ms === 'number' ? `; the provider asks for a pause of ${durationText(ms)}` : '';
};

export const callFault = ({ data }: Frame): string => {
  const { error } = data;
  const message = isJsonObject(error) ? textOrEmpty(error['message']) : '';
  return `${stripControls(message)}${wantedPause(data)}`;
};

const callsText = (data: FrameData): string => {
  const calls: readonly unknown[] = Array.isArray(data['calls']) ? data['calls'] : [];
  return calls
    .filter(isJsonObject)
    .map((call) => oneLine(`${call['tool']} ${call['arguments']}`, 200))
    .join(', ');
};

/** Before each line that a tool or a command printed. */
export const outputIndent = '    ';
const diffStyles = { '+': 'green', '-': 'red', '@': 'cyan' } as const;
const isDiffMark = (mark: string): mark is keyof typeof diffStyles => mark in diffStyles;

const diffLine = (line: string): string | Styled => {
  const mark = line[0] ?? '';
  return isDiffMark(mark)
    ? styled(diffStyles[mark], `${outputIndent}${line}`)
    : `${outputIndent}${line}`;
};

const plainLine = (line: string): Styled => styled('dim', `${outputIndent}${line}`);

/** Output in lines of their own; of a tool that edits, in the colours of a diff. */
const outputLines = (output: string, isDiff: boolean): Text =>
  joined(
    stripControls(output)
      .trimEnd()
      .split('\n')
      .map((line) => [isDiff ? diffLine(line) : plainLine(line)]),
    '\n',
  );

const cutOutput = (output: string, count: number, isFull: boolean): string => {
  if (isFull) return output;
  const shown = lastLines(output, count)
    .split('\n')
    .map((line) => oneLine(line.replaceAll('\t', '  '), 200));
  return shown.join('\n');
};

const editing: ReadonlySet<string> = new Set(['edit', 'write']);
const failedLines = 6;
const diffLinesAtMost = 30;

const toolEnd = ({ data }: Frame, isFull: boolean): Text | null => {
  const tool = textOrEmpty(data['tool']);
  const output = textOrEmpty(data['output']);
  if (data['ok'] !== true && !output.trimEnd().includes('\n'))
    return [styled('red', `  ${tool} did not succeed: ${oneLine(output, isFull ? 4_000 : 400)}`)];
  if (data['ok'] !== true)
    return joined(
      [
        [styled('red', `  ${tool} did not succeed:`)],
        outputLines(cutOutput(output, failedLines, isFull), false),
      ],
      '\n',
    );
  if (editing.has(tool) && output.includes('\n@@')) {
    const lines = stripControls(output).split('\n');
    const diff = lines.slice(lines.findIndex((line) => line.startsWith('@@')));
    const shown = isFull ? diff : diff.slice(0, diffLinesAtMost);
    return outputLines(shown.join('\n'), true);
  }
  return isFull && output !== '' ? outputLines(output, false) : null;
};

const progressBeforeTurns = 0.05;

/** An attempt goes on, as after a verify that failed: the lines before it say why. */
const hasTurns = ({ progress }: FrameData): boolean =>
  typeof progress === 'number' && progress > progressBeforeTurns;

/** These alternate with every turn, or last a moment; the calls show more. */
const shownLiveOnly: ReadonlySet<string> = new Set(['thinking', 'acting', 'closing', 'verifying']);
/** The final frames show more than the status. */

/** `parked until 14:30: provider limit: …` */
export const parkedLine = ({
  parked_until: until,
  parked_reason: why,
}: FrameData): string | null =>
  typeof until === 'string'
    ? `${parkedWords(until, Date.now(), textOrEmpty(why))}: ${oneLine(textOrEmpty(why), 400)}`
    : null;

const statusUpdate = ({ task_id, data }: Frame): Text | null => {
  const parked = parkedLine(data);
  if (parked !== null)
    return [
      styled('yellow', parked),
      `; ${goOnWords(task_id, textOrEmpty(data['parked_reason']))}`,
    ];
  const [status, phase] = [textOrEmpty(data['status']), textOrEmpty(data['phase'])];
  if (shownLiveOnly.has(phase) || finalStatuses.has(status)) return null;
  if (phase === 'preparing' && (status === 'queued' || hasTurns(data))) return null;
  return statusWords(status, phase);
};

/** `turn 3/50` */
export const turnText = ({ data }: Frame): string | null =>
  typeof data['turn'] === 'number' && typeof data['max_turns'] === 'number'
    ? `turn ${data['turn']}/${data['max_turns']}`
    : null;

const logLine = ({ data }: Frame, isFull: boolean): Text => {
  const message = `  ${oneLine(textOrEmpty(data['message']), isFull ? 2_000 : 400)}`;
  const took =
    typeof data['duration_ms'] === 'number' ? `, ${durationText(data['duration_ms'])}` : '';
  const line =
    data['level'] === 'warn' ? styled('yellow', `${message}${took}`) : `${message}${took}`;
  const all = textOrEmpty(data['output']);
  const output = isFull || all === '' ? all : failingLines(all);
  return output === '' ? [line] : joined([[line], outputLines(output, false)], '\n');
};

const shownText = 160;

/** The words of a question, without the command that answers it; null for another frame. */
export const questionText = ({ type, data }: Frame): readonly Styled[] | null => {
  const again = data['again'] === true ? 'after a restart of the server, again ' : '';
  if (type === 'input_required')
    return [styled('yellow', `${again}asks: ${oneLine(textOrEmpty(data['question']), 400)}`)];
  return type === 'approval_required'
    ? [styled('yellow', `${again}wants to call ${callsText(data)}`)]
    : null;
};

const renderers: Readonly<Record<string, (frame: Frame, isFull: boolean) => Text | null>> = {
  status_update: statusUpdate,
  api_call_start: (frame) => {
    const turn = turnText(frame);
    return turn === null ? null : [styled('dim', turn)];
  },
  tool_start: (frame, isFull) =>
    `  ${textOrEmpty(frame.data['tool'])} ${target(frame.data, isFull ? 4_000 : 80)}`.trimEnd(),
  tool_end: toolEnd,
  text_delta: ({ data }, isFull) => {
    const text = textOrEmpty(data['text']);
    return `  ${isFull ? stripControls(text).trim().replaceAll('\n', '\n  ') : oneLine(text, shownText)}`;
  },
  api_call_complete: (frame) =>
    frame.data['ok'] === false
      ? [styled('yellow', `  model call failed: ${callFault(frame)}`)]
      : null,
  log: logLine,
  network: ({ data }, isFull) => {
    const place = oneLine(`${textOrEmpty(data['host'])}:${data['port']}`, 300);
    if (data['allowed'] !== true) return [styled('yellow', `  the network refused ${place}`)];
    return isFull ? [styled('dim', `  the network let ${place} through`)] : null;
  },
  input_required: (frame) => [
    ...(questionText(frame) ?? []),
    `; answer with: agent respond ${frame.task_id} "<answer>"`,
  ],
  approval_required: (frame) => [
    ...(questionText(frame) ?? []),
    `; answer with: agent respond ${frame.task_id} --allow (or --deny)`,
  ],
  completed: () => [styled('green', 'complete')],
  failed: ({ data }) => [styled('red', failureText(data))],
  cancelled: ({ data }) => {
    const reason = stripControls(textOrEmpty(data['reason']));
    return [styled('yellow', `cancelled${reason === '' ? '' : `: ${reason}`}`)];
  },
};

const isBlank = (text: Text): boolean => typeof text === 'string' && text.trim() === '';

/** Null for a frame that tells people nothing new. `isFull`: with all output and text. */
export const frameText = (frame: Frame, isFull = false): Text | null => {
  const text = renderers[frame.type]?.(frame, isFull) ?? null;
  return text === null || isBlank(text) ? null : text;
};

/** `frameText` after the id of the task. */
export const renderFrame = (frame: Frame, isFull = false): Text | null => {
  const text = frameText(frame, isFull);
  if (text === null) return null;
  // The output of a call that succeeded follows the line of the call.
  return frame.type === 'tool_end' && frame.data['ok'] === true
    ? text
    : joined([`${frame.task_id} `, text], '');
};
