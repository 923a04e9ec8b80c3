import type { TaskView } from '../../machines/task-view.ts';
import type { Frame } from '../client/client.ts';
import { oneLine, plain } from './safe-text.ts';

const words = (text: string): string => text.replaceAll('_', ' ');

const state = ({ status, phase, ready }: TaskView): string => {
  if (status === 'queued' && ready && phase === 'waiting_for_run') return 'queued (ready)';
  const shown = oneLine(status);
  return phase === status ? shown : `${shown} (${words(oneLine(phase))})`;
};

/** One line per task: id, state, priority, title. */
export const renderList = (tasks: readonly TaskView[]): string => {
  const width = (column: readonly string[]): number => Math.max(0, ...column.map(({ length }) => length));
  const idWidth = width(tasks.map(({ task_id }) => task_id));
  const stateWidth = width(tasks.map(state));
  return tasks
    .map(
      (task) =>
        `${task.task_id.padEnd(idWidth)}  ${state(task).padEnd(stateWidth)}  P${task.priority}  ${oneLine(task.title)}`,
    )
    .join('\n');
};

const seconds = (from: string | undefined, to: string | undefined): string =>
  from === undefined || to === undefined ? '' : ` in ${((Date.parse(to) - Date.parse(from)) / 1000).toFixed(1)} s`;

const question = ({ question: text, calls }: NonNullable<TaskView['awaiting']>): string =>
  [text, ...calls.map((call) => `${call.tool} ${call.arguments}`)].join(' ');

const until = ({ deadline, default_answer: answer }: NonNullable<TaskView['awaiting']>): string => {
  if (deadline === undefined) return 'you answer';
  return answer === undefined
    ? `${deadline}, then it fails`
    : `${deadline}, then it counts as: ${oneLine(answer, 200)}`;
};

/** Further lines of a value stand below its first. */
const indented = (value: string): string => plain(value).replaceAll('\n', `\n${' '.repeat(13)}`);

/** A task for people: only the lines that say something. */
export const renderTask = (task: TaskView): string => {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['status', state(task)],
    [
      'role',
      task.role === undefined ? undefined : `${task.role}${task.attempt > 0 ? `, attempt ${task.attempt}` : ''}`,
    ],
    ['depends on', task.dependencies.join(', ') || undefined],
    ['waits for', task.unmet_dependencies.join(', ') || undefined],
    ['labels', task.labels.join(', ') || undefined],
    ['created', task.created_at],
    ['started', task.started_at],
    ['completed', task.completed_at && `${task.completed_at}${seconds(task.started_at, task.completed_at)}`],
    ['work', task.usage.turns === 0 ? undefined : `${task.usage.turns} turns, ${task.usage.tool_calls} tool calls`],
    ['asks', task.awaiting && question(task.awaiting)],
    ['until', task.awaiting && until(task.awaiting)],
    ['reason', task.request_reason],
    ['error', task.error && `${task.error.code}: ${task.error.message}`],
    ['results', task.results_path],
  ];
  const lines = rows.flatMap(([name, value]) =>
    value === undefined ? [] : [`  ${name.padEnd(10)} ${indented(value)}`],
  );
  const body = task.description === task.title ? [] : ['', plain(task.description)];
  const result = task.result === undefined ? [] : ['', plain(task.result)];
  return [`${task.task_id}  ${oneLine(task.title, 200)}`, ...lines, ...body, ...result].join('\n');
};

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const target = (data: Frame['data']): string => {
  try {
    const args: unknown = JSON.parse(text(data['arguments']));
    if (typeof args !== 'object' || args === null) return '';
    const { path, command, pattern, summary } = args as Readonly<Record<string, unknown>>;
    return oneLine(text(command ?? path ?? pattern ?? summary), 80);
  } catch {
    return '';
  }
};

const failure = (data: Frame['data']): string => {
  const error = data['error'] as { readonly code?: string; readonly message?: string } | null | undefined;
  return error == null ? 'failed' : `failed: ${error.code}: ${plain(error.message ?? '')}`;
};

const callsIn = (data: Frame['data']): string => {
  const calls = Array.isArray(data['calls']) ? (data['calls'] as readonly { tool: string; arguments: string }[]) : [];
  return calls.map((call) => oneLine(`${call.tool} ${call.arguments}`, 200)).join(', ');
};

/** They alternate with every turn; the tool calls say more. */
const shownLiveOnly: ReadonlySet<string> = new Set(['thinking', 'acting']);
/** Their own frames say more than the status. */
const over: ReadonlySet<string> = new Set(['complete', 'failed', 'cancelled']);

const renderers: Readonly<Record<string, (frame: Frame) => string | null>> = {
  status_update: ({ data }) => {
    if (shownLiveOnly.has(text(data['phase'])) || over.has(text(data['status']))) return null;
    const shown = text(data['status']) === text(data['phase']) ? '' : ` (${words(text(data['phase']))})`;
    return `${text(data['status'])}${shown}`;
  },
  tool_start: ({ data }) => `  ${text(data['tool'])} ${target(data)}`.trimEnd(),
  tool_end: ({ data }) =>
    data['ok'] === true ? null : `  ${text(data['tool'])} did not succeed: ${oneLine(text(data['output']), 160)}`,
  text_delta: ({ data }) => `  ${oneLine(text(data['text']), 160)}`,
  api_call_complete: ({ data }) => (data['ok'] === false ? `  model call ${failure(data)}` : null),
  log: ({ data }) => `  ${oneLine(text(data['message']), 160)}`,
  input_required: ({ task_id, data }) =>
    `asks: ${oneLine(text(data['question']), 400)}; answer with: agent respond ${task_id} "<answer>"`,
  approval_required: ({ task_id, data }) =>
    `wants to call ${callsIn(data)}; answer with: agent respond ${task_id} --allow (or --deny)`,
  completed: () => 'complete',
  failed: ({ data }) => failure(data),
  cancelled: ({ data }) => `cancelled${text(data['reason']) === '' ? '' : `: ${plain(text(data['reason']))}`}`,
};

/** A frame as a line for people, or null when it says nothing new to them. */
export const renderFrame = (frame: Frame): string | null => {
  const line = renderers[frame.type]?.(frame) ?? null;
  return line === null || line.trim() === '' ? null : `${frame.task_id} ${line}`;
};
