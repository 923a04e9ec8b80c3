import { ServiceError } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';
import { entry } from '../journal/event-types.ts';
import { mergeEntry } from '../journal/merge-entry.ts';
import type { TaskView } from '../journal/task-view.ts';
import type { Answer, NewEntry, StoreReads } from '../store/port.ts';
import type { Changes, DiffPart, Merged, Workspace } from '../workspace/port.ts';
import { endOfAttempt, refusesMerge } from './merge-refusal.ts';
import { requireId } from './task-id.ts';

export interface MergeRequest {
  readonly taskId: string;
  readonly attempt?: number;
  readonly squash?: boolean;
  readonly force?: boolean;
}

type OfAttempt = { readonly task_id: string; readonly attempt: number };

/** The changes of attempts. They reject with `ServiceError` only. */
export interface AttemptDiffMerge {
  /**
   * The changes of the latest attempt, or of a given one; also while it runs.
   * @throws task_not_found, event_not_allowed
   */
  diff(taskId: string, attempt: number | null, part?: DiffPart): Promise<OfAttempt & Changes>;
  /** `conflict`: nothing was changed. @throws task_not_found, event_not_allowed */
  merge(request: MergeRequest): Promise<OfAttempt & Merged>;
  /**
   * The work of an attempt is not offered, merged or built on any more; its branch stays.
   * @throws task_not_found, event_not_allowed
   */
  discard(taskId: string, attempt: number | null, reason: string | null): Promise<TaskView>;
}

export interface DiffMergePorts {
  readonly workspace: Pick<Workspace, 'diff' | 'merge' | 'discard' | 'workOf'>;
  readonly store: Pick<StoreReads, 'read'>;
  readonly status: (taskId: string) => Promise<TaskView>;
  readonly record: (entry: NewEntry) => Answer<void>;
  readonly now: () => number;
}

const entriesAtOnce = 1_000;

const readEnd = async (
  store: DiffMergePorts['store'],
  taskId: TaskId,
  attempt: number,
): Promise<string | null> => {
  for (let after = 0; ; ) {
    const entries = await store.read({ taskId, after, limit: entriesAtOnce });
    for (const { type, attempt: of, data } of entries) {
      if (type !== 'completed' && type !== 'failed' && type !== 'cancelled') continue;
      const end = endOfAttempt({ type, attempt: of, data: JSON.parse(data) }, attempt);
      if (end !== null) return end;
    }
    const last = entries.at(-1);
    if (last === undefined || entries.length < entriesAtOnce) return null;
    after = last.seq;
  }
};

const noWork = (
  task_id: TaskId,
  event: 'diff' | 'merge' | 'discard',
  state: string,
): ServiceError =>
  new ServiceError('event_not_allowed', { task_id, event, state, allowed: ['run'] });

export const createAttemptDiffMerge = ({
  workspace,
  store,
  status,
  record,
  now,
}: DiffMergePorts): AttemptDiffMerge => ({
  diff: async (given, attempt, part) => {
    const { task_id, status: state } = await status(given);
    const id = requireId(task_id);
    const changes = await workspace.diff(id, attempt, part);
    if (changes === null) throw noWork(id, 'diff', `${state}, without a branch of an attempt`);
    return { task_id: id, ...changes };
  },
  merge: async ({ taskId: given, attempt: wanted, squash = false, force = false }) => {
    const task = await status(given);
    const id = requireId(task.task_id);
    const attempt = wanted ?? task.attempt;
    if (attempt === 0) throw noWork(id, 'merge', `${task.status}, without an attempt`);
    const refused = refusesMerge({
      taskId: id,
      attempt,
      isLive: task.status === 'started' && attempt === task.attempt,
      isComplete: task.status === 'complete',
      end: await readEnd(store, id, attempt),
      force,
      isDiscarded: (await workspace.workOf(id, attempt))?.discarded_at !== undefined,
    });
    if (refused !== null) throw ServiceError.from(refused);
    const merged = await workspace.merge(id, attempt, squash ? 'squash' : 'ff', task.title);
    if (merged.status === 'merged') await record(mergeEntry(id, attempt, merged, now()));
    return { task_id: id, attempt, ...merged };
  },
  discard: async (given, wanted, reason) => {
    const task = await status(given);
    const id = requireId(task.task_id);
    const attempt = wanted ?? task.attempt;
    const refuse = (state: string, allowed: readonly string[]): ServiceError =>
      new ServiceError('event_not_allowed', { task_id: id, event: 'discard', state, allowed });
    if (task.status === 'started' && attempt === task.attempt)
      throw refuse(`at work (attempt ${attempt})`, ['cancel', 'discard it when it has ended']);
    const before = await workspace.workOf(id, attempt);
    const found = await workspace.discard(id, attempt, reason);
    if (found === null)
      throw noWork(id, 'discard', `${task.status}, without saved work of attempt ${attempt}`);
    if (found === 'merged') throw refuse(`merged (attempt ${attempt})`, ['diff']);
    if (before?.discarded_at === undefined) {
      const message = `its work was discarded${reason === null ? '' : `: ${reason}`}`;
      await record(entry(id, attempt, 'log', now(), { level: 'info', message }));
    }
    return status(id);
  },
});
