import type { TaskView } from '../../../actors/journal/task-view.ts';
import { workedMs } from '../../../http/worked-time.ts';
import { bytesText } from '../../../machines/bytes.ts';
import { conflictWords } from '../../../machines/conflict-words.ts';
import { failingLines } from '../../../machines/last-lines.ts';
import { describeFailure } from '../../../machines/message-of.ts';
import { plural, someOf } from '../../../machines/plural.ts';
import { pullRequestName, stateWords, waitsForWords } from '../../words/state-words.ts';
import { costText } from '../money.ts';
import { attemptText, nextSteps, tokensText } from '../next-steps.ts';
import { oneLine, stripControls } from '../safe-text.ts';
import { joined, styled, type Text } from '../styled.ts';
import { clockText, durationText, timeText } from '../times.ts';
import { cutToWidth, wrapAfter, wrapLines } from '../wrap.ts';
import { statusStyle } from './render-list.ts';

/** Its last attempt did not complete it. */
const isClosedByHand = ({ status, attempt, result }: TaskView): boolean =>
  status === 'complete' && attempt > 0 && result === undefined;

/** ` in 3 s`, ` by hand`; empty for a task that is not over. */
export const tookText = (task: TaskView): string => {
  if (isClosedByHand(task)) return ' by hand';
  const worked = task.completed_at === undefined ? null : workedMs(task, Date.now());
  return worked === null ? '' : ` in ${durationText(worked)}`;
};

const waitedText = ({ waited_seconds: waited = 0 }: TaskView): string | undefined =>
  waited === 0 ? undefined : `${durationText(waited * 1_000)}, not in its time`;

/** A question about interrupted calls names them itself. */
const questionText = ({
  kind,
  question: text,
  calls,
}: NonNullable<TaskView['awaiting']>): string =>
  kind === 'input'
    ? text
    : [text, ...calls.map((call) => `${call.tool} ${call.arguments}`)].join(' ');

const deadlineText = ({
  deadline,
  default_answer: answer,
}: NonNullable<TaskView['awaiting']>): string => {
  if (deadline === undefined) return 'you answer';
  return answer === undefined
    ? `${clockText(deadline, Date.now())}, then it fails`
    : `${clockText(deadline, Date.now())}, then it counts as: ${oneLine(answer, 200)}`;
};

const valueColumn = 13;

const indented = (value: string): string =>
  stripControls(value).replaceAll('\n', `\n${' '.repeat(valueColumn)}`);

export const removedText = ({ at, after_days }: NonNullable<TaskView['history_removed']>): string =>
  `removed on ${timeText(at).slice(0, 10)}, ${plural(after_days, 'day')} after its end (store.retention_days)`;

/** `width`: columns of the terminal, null where lines may be long. */
const outputLines = (output: unknown, width: number | null, count?: number): readonly string[] => {
  if (typeof output !== 'string' || output === '') return [];
  const lines = failingLines(output, count).split('\n');
  return width === null
    ? lines
    : lines.map((line) => cutToWidth(line.replaceAll('\t', '  '), width - valueColumn));
};

const errorText = ({ error }: TaskView, width: number | null): string | undefined => {
  if (error === undefined) return undefined;
  const room = width === null ? null : width - valueColumn;
  return [
    wrapAfter('', describeFailure(error), room),
    ...outputLines(error.facts['output'], width),
  ].join('\n');
};

const roleLine = (task: TaskView): string | undefined =>
  task.role === undefined
    ? undefined
    : `${task.role}${task.attempt > 0 ? `, attempt ${attemptText(task)}` : ''}`;

const workText = ({ usage }: TaskView): string | undefined =>
  usage.turns === 0
    ? undefined
    : `${plural(usage.turns, 'turn')}, ${plural(usage.tool_calls, 'tool call')}`;

/** A line for each attempt that is over, when the latest is not the only one. */
const attemptsText = ({ attempts = [], attempt: latest }: TaskView): string | undefined =>
  attempts.every(({ attempt }) => attempt === latest)
    ? undefined
    : attempts
        .map(({ attempt, role, status, seconds, cost_usd: cost, merged_at: merged }) =>
          [
            `${attempt}`,
            role,
            status,
            durationText(seconds * 1_000),
            costText(cost),
            merged === undefined ? undefined : `merged ${timeText(merged)}`,
          ]
            .filter((text) => text !== undefined)
            .join('  '),
        )
        .join('\n');

/** The time of all attempts that are over, when there were several. */
const totalTimeText = ({ attempts = [] }: TaskView): string | undefined =>
  attempts.length < 2
    ? undefined
    : `${durationText(attempts.reduce((sum, { seconds }) => sum + seconds, 0) * 1_000)} in ${attempts.length} attempts`;

const changesLine = ({ work }: TaskView): string | undefined => {
  if (work === undefined) return undefined;
  const { files, insertions, deletions, branch, merged_at: merged, incomplete } = work;
  const size = `${plural(files, 'file')} +${insertions} -${deletions}`;
  if (branch === undefined) return files === 0 ? undefined : `${size} so far`;
  const { merge_commit: commit } = work;
  const { discarded_at: discarded, undone } = work;
  const open = incomplete ? 'not complete' : 'not merged';
  const unmerged =
    discarded === undefined ? open : `${undone ? 'undone' : 'discarded'} ${timeText(discarded)}`;
  const as = commit === undefined ? '' : ` as ${commit.slice(0, 12)}`;
  const state = merged === undefined ? unmerged : `merged ${timeText(merged)}${as}`;
  return `${size} on ${branch}, ${state}`;
};

const refusedLines = 8;

/** Why it is not merged: in short, the files, and what the command printed. */
const mergeText = ({ work }: TaskView, width: number | null): string | undefined => {
  const { state, message = '', output, paths = [] } = work?.merge ?? {};
  if (state !== 'refused') return undefined;
  return [
    wrapAfter('', `refused: ${message}`, width === null ? null : width - valueColumn),
    ...(paths.length === 0 ? [] : [someOf(paths)]),
    ...outputLines(output, width, refusedLines),
  ].join('\n');
};

/** How it stands, its page, and why it is not merged yet. */
const pullRequestText = ({ pull_request: found }: TaskView): string | undefined => {
  if (found === undefined) return undefined;
  const { state, checks, review, mergeable, round, url, waits_for: waits, reason } = found;
  const facts = [
    `${pullRequestName(found)} ${state}`,
    ...Object.entries({ checks, review, mergeable }).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name} ${value}`],
    ),
    ...(round === 0 ? [] : [`round ${round}`]),
  ];
  const why = [waits && `waits for ${waitsForWords(waits)}`, reason].filter(Boolean).join(': ');
  return [facts.join(', '), url, why].filter(Boolean).join('\n');
};

const imagesText = ({ attachments }: TaskView): string | undefined =>
  attachments
    ?.map(({ name, media_type: type, bytes }) => {
      const kind = type.replace('image/', '').toUpperCase();
      return `${name === '' ? 'image' : name} (${kind}, ${bytesText(bytes)})`;
    })
    .join(', ');

const testedText = ({ work }: TaskView): string | undefined => {
  if (work?.merged_at === undefined) return undefined;
  const { tested } = work;
  return tested === undefined
    ? undefined
    : `${tested.commands.join(', ')}, in ${durationText(tested.tested_seconds * 1_000)}, ${timeText(tested.tested_at)}`;
};

const endWord = (task: TaskView): string => {
  if (isClosedByHand(task)) return 'closed';
  return task.status === 'complete' ? 'completed' : 'ended';
};

const taskRows = (
  task: TaskView,
  width: number | null,
): readonly (readonly [string, string | undefined])[] => [
  ['role', roleLine(task)],
  ['held by', task.held_by && `${task.held_by}; agent reopen ${task.task_id} releases it`],
  ['priority', `P${task.priority}`],
  ['depends on', task.dependencies.join(', ') || undefined],
  ['waits for', task.unmet_dependencies.join(', ') || undefined],
  ['source', task.source?.url],
  ['labels', task.labels.join(', ') || undefined],
  ['created', timeText(task.created_at)],
  ['started', task.started_at && timeText(task.started_at)],
  [endWord(task), task.completed_at && `${timeText(task.completed_at)}${tookText(task)}`],
  [task.phase === 'backing_off' ? 'because' : 'now', task.activity],
  ['waited', waitedText(task)],
  ['attempts', attemptsText(task)],
  ['time', totalTimeText(task)],
  ['work', workText(task)],
  ['changes', changesLine(task)],
  ['merge', mergeText(task, width)],
  ['pr', pullRequestText(task)],
  ['tested', testedText(task)],
  ['conflict', task.work?.conflicts_with && conflictWords(task.work.conflicts_with)],
  ['note', task.work?.notes?.join('\n')],
  ['tokens', tokensText(task.usage)],
  ['cost', costText(task.usage.cost_usd)],
  ['asks', task.awaiting && questionText(task.awaiting)],
  ['until', task.awaiting && deadlineText(task.awaiting)],
  ['parked', task.parked_reason && oneLine(task.parked_reason, 400)],
  ['reason', task.close_reason ?? task.request_reason],
  ['error', errorText(task, width)],
  ['images', imagesText(task)],
  ['results', task.results_path],
  ['history', task.history_removed && removedText(task.history_removed)],
];

/**
 * `width`: columns of the terminal, null where lines may be long. `steps`: the commands at its end.
 */
export const renderTask = (
  task: TaskView,
  width: number | null = null,
  steps = nextSteps(task),
): Text => {
  const row = (name: string, value: string): string =>
    `  ${name.padEnd(10)} ${indented(wrapLines(value, width === null ? null : width - valueColumn))}`;
  const style = statusStyle(task);
  const status = stateWords(task, Date.now());
  const lines: Text[] = [
    [styled('bold', task.task_id), `  ${oneLine(task.title, 200)}`],
    [row('status', ''), style === undefined ? status : styled(style, status)],
    ...taskRows(task, width).flatMap(([name, value]) =>
      value === undefined ? [] : [row(name, value)],
    ),
  ];
  const body = task.description === task.title ? [] : ['', wrapLines(task.description, width)];
  const result = task.result === undefined ? [] : ['', wrapLines(task.result, width)];
  const next = steps.length === 0 ? [] : ['', ...steps];
  return joined([...lines, ...body, ...result, ...next], '\n');
};
