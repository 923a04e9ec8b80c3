import type { TaskView } from '../../actors/journal/task-view.ts';
import type { EntryReads } from '../../actors/store/port.ts';
import { finalStatuses } from '../../machines/task.ts';
import { taskNotFound } from './errors.ts';
import { type A2aState, isTerminal } from './protocol.ts';
import { createRunFold, type RunFold, type TaskRun } from './run-fold.ts';

/** `bd-a1` is the first run of a task, `bd-a1~3` the one that began with its third attempt. */
export interface RunId {
  readonly taskId: string;
  readonly from: number | null;
}

/** @throws TASK_NOT_FOUND */
export const parseRunId = (id: string): RunId => {
  const match = /^([^~]{1,128})(?:~([1-9]\d{0,8}))?$/.exec(id);
  if (match?.[1] === undefined) throw taskNotFound(id);
  return { taskId: match[1], from: match[2] === undefined ? null : Number(match[2]) };
};

export const runIdOf = (taskId: string, { from }: Pick<TaskRun, 'from'>): string =>
  from === null ? taskId : `${taskId}~${from}`;

export interface RunReads {
  readonly store: Pick<EntryReads, 'read' | 'removed'>;
  readonly status: (taskId: string) => Promise<TaskView>;
}

export interface ReadRun {
  readonly view: TaskView;
  readonly fold: RunFold;
  readonly run: TaskRun;
  /** The last entry that it has. */
  readonly asOf: number;
}

const perRead = 1_000;

const ended: Readonly<Record<string, A2aState>> = {
  complete: 'COMPLETED',
  failed: 'FAILED',
  cancelled: 'CANCELED',
};

/**
 * Takes the state that the tracker alone knows: of a task that never ran here, or that somebody
 * closed there.
 */
const takeView = (run: TaskRun, view: TaskView): void => {
  const changedAt = Date.parse(view.updated_at);
  if (run.at === 0) run.phase = view.phase;
  const state = ended[view.status];
  if (state !== undefined && !isTerminal(run.state) && run.at <= changedAt)
    Object.assign(run, { state, result: view.result ?? null });
  // As it is listed.
  run.at = Math.max(run.at, changedAt);
  const isRefused = view.error?.code === 'credential_missing' && !finalStatuses.has(view.status);
  if (isRefused && run.state === 'SUBMITTED')
    Object.assign(run, { state: 'AUTH_REQUIRED', says: view.error?.message ?? null });
};

const foldUpTo = async (
  { store }: Pick<RunReads, 'store'>,
  taskId: string,
  through: number,
): Promise<Pick<ReadRun, 'fold' | 'asOf'>> => {
  const fold = createRunFold((await store.removed(taskId)) !== null);
  let asOf = 0;
  for (;;) {
    const entries = await store.read({ taskId, after: asOf, limit: perRead });
    const some = entries.filter(({ seq }) => seq <= through);
    for (const entry of some) fold.take(entry);
    asOf = some.at(-1)?.seq ?? asOf;
    if (some.length < perRead) return { fold, asOf };
  }
};

/** The latest run of a task. @throws task_not_found */
export const readLatestRun = async (reads: RunReads, taskId: string): Promise<ReadRun> => {
  const view = await reads.status(taskId);
  const { fold, asOf } = await foldUpTo(reads, taskId, Number.POSITIVE_INFINITY);
  takeView(fold.latest(), view);
  return { view, fold, run: fold.latest(), asOf };
};

/** A run as the journal had it at an entry; null when it had not begun. @throws task_not_found */
export const readRunAt = async (
  reads: RunReads,
  id: string,
  through: number,
): Promise<ReadRun | null> => {
  const { taskId, from } = parseRunId(id);
  const view = await reads.status(taskId);
  const { fold, asOf } = await foldUpTo(reads, taskId, through);
  const run = fold.runs.find((each) => each.from === from);
  return run === undefined ? null : { view, fold, run, asOf };
};

/** @throws TASK_NOT_FOUND, task_not_found */
export const readRun = async (reads: RunReads, id: string): Promise<ReadRun> => {
  const { taskId, from } = parseRunId(id);
  const found = await readLatestRun(reads, taskId);
  const run = found.fold.runs.find((each) => each.from === from);
  if (run === undefined || found.view.task_id !== taskId) throw taskNotFound(id);
  return { ...found, run };
};
