import { ServiceError } from '../../../machines/errors.ts';
import { refuses } from '../../../machines/task/command-refusals.ts';
import type { TaskId } from '../../../machines/task.ts';
import { isTaken } from '../../../machines/tracked-task.ts';
import { entry } from '../../journal/event-types.ts';
import { asTracked, savedSnapshot, viewSaved } from '../../journal/snapshots.ts';
import type { TaskView } from '../../journal/task-view.ts';
import { requestData } from '../../journal/transition-frames.ts';
import type { Store, StoreReads, StoreWrites } from '../../store/port.ts';
import {
  defaultCloseReason,
  type StatusWrites,
  type TrackerInfo,
  type TrackerReads,
  type TrackerWrites,
} from '../../tracker/port.ts';

import type { WorkReads } from '../../workspace/worktrees/work-view.ts';
import { requireAnswer } from './require-answer.ts';
import { requireId } from './task-id.ts';
import { createTaskQueries, type TaskQueries } from './task-queries.ts';

/** Operations on the project's files while no server runs. */
export interface OfflineService extends TaskQueries {
  /** @throws task_not_found, dependencies_unmet, already_running */
  close(taskId: string, reason: string | null): Promise<TaskView>;
  /**
   * The task's machine follows at the next start of a server. The reason becomes a comment in the
   * tracker.
   * @throws task_not_found, event_not_allowed
   */
  reopen(taskId: string, reason: string | null): Promise<TaskView>;
}

/** Opens a task in the tracker, where no chart has to know of it. */
export const takeBack = async (
  tracker: Pick<StatusWrites, 'reopen'> & Pick<TrackerWrites, 'note'>,
  id: TaskId,
  reason: string | null,
): Promise<void> => {
  const { refusal } = await tracker.reopen(id);
  if (refusal !== null) throw ServiceError.from(refusal);
  if (reason !== null) await tracker.note(id, `Reopened: ${reason}`);
};

export const createOfflineService = (
  tracker: TrackerInfo & TrackerReads & TrackerWrites & Pick<StatusWrites, 'close' | 'reopen'>,
  store: (StoreReads & Pick<StoreWrites, 'commit'> & Pick<Store, 'images'>) | null,
  now: () => number,
  workOf: WorkReads,
): OfflineService => {
  const queries = createTaskQueries({
    tracker,
    store,
    viewOf: (tracked) => viewSaved(store, tracked),
    record: async (entry) => {
      await store?.commit({ entries: [entry] });
    },
    now,
    workOf,
  });
  const logRequest = async (
    id: TaskId,
    request: 'close' | 'reopen',
    reason: string | null,
  ): Promise<void> => {
    const { attempt } = await queries.status(id);
    const data = requestData(request, reason);
    await store?.commit({ entries: [entry(id, attempt, 'log', now(), data)] });
  };
  return {
    ...queries,
    close: async (taskId, reason) => {
      const id = requireId(taskId);
      const saved = (await store?.actor(id)) ?? null;
      if (saved?.pending === true) {
        const { attempt } = await queries.status(id);
        throw new ServiceError('already_running', { task_id: id, attempt });
      }
      const tracked = await tracker.find(id);
      requireAnswer(tracked, reason);
      const { refusal } = await tracker.close(id, reason ?? defaultCloseReason);
      if (refusal !== null) throw ServiceError.from(refusal);
      if (tracked?.status !== 'closed') await logRequest(id, 'close', reason);
      return queries.status(id);
    },
    reopen: async (taskId, reason) => {
      const id = requireId(taskId);
      const tracked = await tracker.find(id);
      if (tracked === null) throw new ServiceError('task_not_found', { task_id: id });
      const snapshot = asTracked(await savedSnapshot(store, id), tracked, now());
      const refused =
        isTaken(tracked, tracker.actor) && !snapshot.hasTag('pending')
          ? null
          : refuses(snapshot, null, { type: 'reopen', reason, at: now() });
      if (refused !== null) throw ServiceError.from(refused);
      await takeBack(tracker, id, reason);
      await logRequest(id, 'reopen', reason);
      return queries.status(id);
    },
  };
};
