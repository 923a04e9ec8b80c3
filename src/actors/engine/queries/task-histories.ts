import { mergeQueueMachine } from '../../../machines/merge-queue/merge-queue-machine.ts';
import { pullRequestMachine } from '../../../machines/pull-request/pull-request-machine.ts';
import { sourceMachine } from '../../../machines/source/source-machine.ts';
import type { TaskId } from '../../../machines/task.ts';
import { workflowMachine } from '../../../machines/workflow/workflow-machine.ts';
import { frameJson } from '../../journal/event-types.ts';
import {
  differenceFrom,
  entriesUpTo,
  fold,
  foldHosted,
  hostedDifference,
  hostedKey,
  type ReplayedStep,
} from '../../journal/replay/replay.ts';

import { removedView, type TaskView } from '../../journal/task-view.ts';
import type { Entry, KeptEntry, StoreReads } from '../../store/port.ts';

interface ReplayRequest {
  readonly taskId: string;
  /** Last seq to replay; null: all. */
  readonly at: number | null;
}

/** Result of a replay of a task's journal (`agent replay`). */
interface Replayed {
  readonly task_id: string;
  readonly steps: readonly ReplayedStep[];
  readonly state: { readonly task: unknown; readonly agent: unknown };
  readonly context: { readonly task: unknown; readonly agent: unknown };
  /** Difference to the saved state after a full replay; null when there is none. */
  readonly difference: string | null;
  /** Then there are no steps: without its beginning, a journal leads to no state. */
  readonly history_removed?: TaskView['history_removed'];
}

interface TaskHistory {
  readonly entries: readonly unknown[];
  readonly next_after?: number;
  /** Present when entries after the given seq were removed. */
  readonly history_removed?: TaskView['history_removed'];
}

interface HistoryRequest {
  readonly taskId: string;
  readonly after?: number;
  readonly limit?: number;
  /** Entries as they are kept, with their hashes, in place of frames. */
  readonly kept?: boolean;
}

export interface TaskHistories {
  /** @throws task_not_found */
  replay(request: ReplayRequest): Promise<Replayed>;
  /** Journal of a task, oldest first. */
  history(request: HistoryRequest): Promise<TaskHistory>;
}

const historyPageSize = 1_000;

const keptView = ({ taskId, taskSeq, ...entry }: KeptEntry) => ({
  task_id: taskId,
  task_seq: taskSeq,
  ...entry,
});
const recordedFrame = (entry: Entry): { readonly seq: number } => JSON.parse(frameJson(entry));

const hostedMachines = {
  workflow: workflowMachine,
  mergeQueue: mergeQueueMachine,
  pullRequest: pullRequestMachine,
  source: sourceMachine,
} as const;
const hostedKinds = ['workflow', 'mergeQueue', 'pullRequest', 'source'] as const;

/** Null when no chart beside those of tasks has this id. */
const replayHosted = async (
  store: Pick<StoreReads, 'read' | 'actor' | 'removed'>,
  id: string,
  at: number | null,
): Promise<Replayed | null> => {
  const rows = await Promise.all(hostedKinds.map((kind) => store.actor(hostedKey(kind, id))));
  const kind = hostedKinds.find((_, index) => rows[index] != null);
  if (kind === undefined) return null;
  const removed = await store.removed(id);
  const entries = removed === null ? await entriesUpTo(store, id, at) : [];
  const replayed = foldHosted(kind, hostedMachines[kind], entries);
  const { steps, snapshot } = replayed;
  return {
    task_id: id,
    steps,
    state: { task: snapshot?.value ?? null, agent: null },
    context: { task: snapshot?.context ?? null, agent: null },
    difference: at === null ? await hostedDifference(store, kind, id, replayed) : null,
    history_removed: removed === null ? undefined : removedView(removed),
  };
};

/** `store` is null in a project without runs. `find` rejects for a task that does not exist. */
export const createTaskHistories = (
  store: Pick<StoreReads, 'read' | 'kept' | 'actor' | 'removed'> | null,
  find: (taskId: string) => Promise<{ readonly id: TaskId }>,
): TaskHistories => ({
  replay: async ({ taskId, at }) => {
    const hosted = store === null ? null : await replayHosted(store, taskId, at);
    if (hosted !== null) return hosted;
    const { id } = await find(taskId);
    const removed = (await store?.removed(id)) ?? null;
    const { steps, task, agent } = fold(
      id,
      store === null || removed !== null ? [] : await entriesUpTo(store, id, at),
    );
    return {
      task_id: id,
      steps,
      state: { task: task.value, agent: agent?.value ?? null },
      context: { task: task.context, agent: agent?.context ?? null },
      difference: store === null || at !== null ? null : await differenceFrom(store, id),
      history_removed: removed === null ? undefined : removedView(removed),
    };
  },
  history: async ({ taskId, after: seq = 0, limit = historyPageSize, kept = false }) => {
    const { id } = await find(taskId);
    const page = { taskId: id, after: seq, limit };
    const entries = kept
      ? ((await store?.kept(page)) ?? []).map(keptView)
      : ((await store?.read(page)) ?? []).map(recordedFrame);
    const last = entries.at(-1);
    const removed = (await store?.removed(id)) ?? null;
    return {
      entries,
      ...(entries.length === limit && last !== undefined ? { next_after: last.seq } : {}),
      ...(removed !== null && seq < removed.seq ? { history_removed: removedView(removed) } : {}),
    };
  },
});
