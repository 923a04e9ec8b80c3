import { frameJson, type SentEntry } from '../actors/journal/event-types.ts';
import type { TaskView } from '../actors/journal/task-view.ts';

/** The data is JSON, so it has no line break. */
export const sseFrame = (entry: SentEntry): string =>
  `id: ${entry.seq}\nevent: ${entry.type}\ndata: ${frameJson(entry)}\n\n`;

interface ControlSubject {
  /** Null in the stream of all tasks. */
  readonly taskId: string | null;
  readonly attempt: number;
}

/** A frame that is not in the journal. It has no id, since no reader can resume from it. */
export const controlFrame = (
  type: 'connected' | 'stream_closed' | 'gap',
  { taskId, attempt }: ControlSubject,
  data: object,
): string =>
  `event: ${type}\ndata: ${JSON.stringify({
    type,
    task_id: taskId,
    attempt,
    timestamp: new Date().toISOString(),
    data,
  })}\n\n`;

/**
 * The snapshot of a task without journal entries. Its seq is the highest of the journal: the next
 * entry of the task has a higher one.
 */
export const snapshotFrame = (seq: number, task: TaskView): string =>
  sseFrame({
    seq,
    taskId: task.task_id,
    attempt: task.attempt,
    type: 'snapshot',
    at: Date.now(),
    data: JSON.stringify({ machine: 'task', value: task.status, tags: [], task }),
  });
