import type { TaskView } from '../../actors/journal/task-view.ts';
import { plural } from '../../machines/plural.ts';
import type { Frame } from '../client/client.ts';
import { isJson } from '../client/json.ts';
import { durationText } from './durations.ts';
import { oneLine, stripControls } from './safe-text.ts';

const withSpaces = (text: string): string => text.replaceAll('_', ' ');

const stateText = ({ status, phase, ready }: TaskView): string => {
  if (status === 'queued' && ready && phase === 'waiting_for_run') return 'queued (ready)';
  const shown = oneLine(status);
  return phase === status ? shown : `${shown} (${withSpaces(oneLine(phase))})`;
};

const tookText = (from: string | undefined, to: string | undefined): string =>
  from === undefined || to === undefined
    ? ''
    : ` in ${durationText(Date.parse(to) - Date.parse(from))}`;

const questionText = ({ question: text, calls }: NonNullable<TaskView['awaiting']>): string =>
  [text, ...calls.map((call) => `${call.tool} ${call.arguments}`)].join(' ');

const deadlineText = ({
  deadline,
  default_answer: answer,
}: NonNullable<TaskView['awaiting']>): string => {
  if (deadline === undefined) return 'you answer';
  return answer === undefined
    ? `${deadline}, then it fails`
    : `${deadline}, then it counts as: ${oneLine(answer, 200)}`;
};

const indented = (value: string): string =>
  stripControls(value).replaceAll('\n', `\n${' '.repeat(13)}`);

export const removedText = ({ at, after_days }: NonNullable<TaskView['history_removed']>): string =>
  `removed on ${at.slice(0, 10)}, ${plural(after_days, 'day')} after its end (store.retention_days)`;

export const renderTask = (task: TaskView): string => {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['status', stateText(task)],
    [
      'role',
      task.role === undefined
        ? undefined
        : `${task.role}${task.attempt > 0 ? `, attempt ${task.attempt}` : ''}`,
    ],
    ['depends on', task.dependencies.join(', ') || undefined],
    ['waits for', task.unmet_dependencies.join(', ') || undefined],
    ['labels', task.labels.join(', ') || undefined],
    ['created', task.created_at],
    ['started', task.started_at],
    [
      'completed',
      task.completed_at && `${task.completed_at}${tookText(task.started_at, task.completed_at)}`,
    ],
    [
      'work',
      task.usage.turns === 0
        ? undefined
        : `${plural(task.usage.turns, 'turn')}, ${plural(task.usage.tool_calls, 'tool call')}`,
    ],
    ['asks', task.awaiting && questionText(task.awaiting)],
    ['until', task.awaiting && deadlineText(task.awaiting)],
    ['reason', task.request_reason],
    ['error', task.error && `${task.error.code}: ${task.error.message}`],
    ['results', task.results_path],
    ['history', task.history_removed && removedText(task.history_removed)],
  ];
  const lines = rows.flatMap(([name, value]) =>
    value === undefined ? [] : [`  ${name.padEnd(10)} ${indented(value)}`],
  );
  const body = task.description === task.title ? [] : ['', stripControls(task.description)];
  const result = task.result === undefined ? [] : ['', stripControls(task.result)];
  return [`${task.task_id}  ${oneLine(task.title, 200)}`, ...lines, ...body, ...result].join('\n');
};

const textOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '');

const target = (data: Frame['data']): string => {
  try {
    const args: unknown = JSON.parse(textOrEmpty(data['arguments']));
    if (!isJson(args)) return '';
    const { path, command, pattern, summary } = args;
    return oneLine(textOrEmpty(command ?? path ?? pattern ?? summary), 80);
  } catch {
    return '';
  }
};

const failureText = (data: Frame['data']): string => {
  const { error } = data;
  return isJson(error)
    ? `failed: ${error['code']}: ${stripControls(textOrEmpty(error['message']))}`
    : 'failed';
};

const callsText = (data: Frame['data']): string => {
  const calls: readonly unknown[] = Array.isArray(data['calls']) ? data['calls'] : [];
  return calls
    .filter(isJson)
    .map((call) => oneLine(`${call['tool']} ${call['arguments']}`, 200))
    .join(', ');
};

/** These alternate with every turn; the tool calls show more. */
const shownLiveOnly: ReadonlySet<string> = new Set(['thinking', 'acting']);
/** The final frames show more than the status. */
const finalStatuses: ReadonlySet<string> = new Set(['complete', 'failed', 'cancelled']);

const renderers: Readonly<Record<string, (frame: Frame) => string | null>> = {
  status_update: ({ data }) => {
    if (
      shownLiveOnly.has(textOrEmpty(data['phase'])) ||
      finalStatuses.has(textOrEmpty(data['status']))
    )
      return null;
    const shown =
      textOrEmpty(data['status']) === textOrEmpty(data['phase'])
        ? ''
        : ` (${withSpaces(textOrEmpty(data['phase']))})`;
    return `${textOrEmpty(data['status'])}${shown}`;
  },
  tool_start: ({ data }) => `  ${textOrEmpty(data['tool'])} ${target(data)}`.trimEnd(),
  tool_end: ({ data }) =>
    data['ok'] === true
      ? null
      : `  ${textOrEmpty(data['tool'])} did not succeed: ${oneLine(textOrEmpty(data['output']), 160)}`,
  text_delta: ({ data }) => `  ${oneLine(textOrEmpty(data['text']), 160)}`,
  api_call_complete: ({ data }) =>
    data['ok'] === false ? `  model call ${failureText(data)}` : null,
  log: ({ data }) => `  ${oneLine(textOrEmpty(data['message']), 160)}`,
  input_required: ({ task_id, data }) =>
    `asks: ${oneLine(textOrEmpty(data['question']), 400)}; answer with: agent respond ${task_id} "<answer>"`,
  approval_required: ({ task_id, data }) =>
    `wants to call ${callsText(data)}; answer with: agent respond ${task_id} --allow (or --deny)`,
  completed: () => 'complete',
  failed: ({ data }) => failureText(data),
  cancelled: ({ data }) =>
    `cancelled${textOrEmpty(data['reason']) === '' ? '' : `: ${stripControls(textOrEmpty(data['reason']))}`}`,
};

/** Null for a frame that tells people nothing new. */
export const renderFrame = (frame: Frame): string | null => {
  const line = renderers[frame.type]?.(frame) ?? null;
  return line === null || line.trim() === '' ? null : `${frame.task_id} ${line}`;
};
