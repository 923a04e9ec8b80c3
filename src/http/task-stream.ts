import type { TaskView } from '../actors/journal/task-view.ts';
import type { EntryReads } from '../actors/store/port.ts';
import { plural } from '../machines/plural.ts';
import { finalStatuses } from '../machines/task.ts';
import { followJournal } from './follow-journal.ts';
import type { SseConnection } from './sse.ts';
import { controlFrame, snapshotFrame, sseFrame } from './stream-frames.ts';

export interface Streams {
  /**
   * The frames of one task: `connected`, the entries after the given id or from the latest
   * snapshot, then new ones until the running attempt ends. For a task that is over: all entries,
   * then the end.
   */
  task(connection: SseConnection, view: TaskView, after: number | null): void;
  /**
   * The frames of every task: the entries after the given id, or the latest snapshot of each
   * running task, then new ones.
   */
  every(connection: SseConnection, after: number | null): void;
}

/** Starts at the latest snapshot, or at 0 when the task is over. */
const startWithoutId = async (
  store: EntryReads,
  connection: SseConnection,
  view: TaskView,
  isOver: boolean,
): Promise<number> => {
  const seq = await store.lastSeq();
  const latest = await store.latest(view.task_id, 'snapshot');
  if (latest !== null) return isOver ? 0 : latest.seq - 1;
  connection.write(snapshotFrame(seq, view));
  return seq;
};

/**
 * Tells a reader that entries after its id were removed, and ends its stream. @returns false when
 * none were
 */
const tellRemoved = async (
  store: EntryReads,
  connection: SseConnection,
  subject: { readonly taskId: string | null; readonly attempt: number },
  after: number | null,
): Promise<boolean> => {
  const removed = after === null ? null : await store.removed(subject.taskId);
  if (after === null || removed === null || after >= removed.seq) return false;
  const message = `what was before was removed after ${plural(removed.days, 'day')}; reconnect with Last-Event-ID: ${removed.seq}`;
  connection.write(controlFrame('gap', subject, { resume_from: removed.seq, message }));
  connection.end();
  return true;
};

const framesPerRead = 256;

/** Single entries, no faster than the client reads. */
const sendEntries = async (
  store: EntryReads,
  connection: SseConnection,
  seqs: readonly number[],
): Promise<void> => {
  for (let at = 0; at < seqs.length && !connection.closed(); at += framesPerRead) {
    const some = seqs.slice(at, at + framesPerRead);
    const entries = (
      await Promise.all(some.map(async (seq) => store.read({ after: seq - 1, limit: 1 })))
    ).flat();
    connection.write(entries.map(sseFrame).join(''));
    await connection.drained();
  }
};

export const createStreams = (store: EntryReads, onError: (error: unknown) => void): Streams => {
  const run = (connection: SseConnection, stream: () => Promise<void>): void => {
    stream().catch((error: unknown) => {
      onError(error);
      connection.end();
    });
  };

  const streamTask = async (
    connection: SseConnection,
    view: TaskView,
    after: number | null,
  ): Promise<void> => {
    const taskId = view.task_id;
    const subject = { taskId, attempt: view.attempt };
    const isOver = finalStatuses.has(view.status);
    connection.write(
      controlFrame('connected', subject, { task_id: taskId, message: `connected to ${taskId}` }),
    );
    if (await tellRemoved(store, connection, subject, after)) return;
    const data = { task_id: taskId, message: `task is ${view.status}` };
    followJournal(store, connection, {
      taskId,
      after: after ?? (await startWithoutId(store, connection, view, isOver)),
      endsAfter: view.status === 'queued' ? await store.lastSeq() : 0,
      closing: isOver ? controlFrame('stream_closed', subject, data) : null,
      onError,
    });
  };
  const streamAll = async (connection: SseConnection, given: number | null): Promise<void> => {
    const after = given ?? (await store.lastSeq());
    const subject = { taskId: null, attempt: 0 };
    connection.write(controlFrame('connected', subject, { message: 'connected to every task' }));
    if (await tellRemoved(store, connection, subject, given)) return;
    if (given === null) {
      // What was committed meanwhile, here or by another server, follows as an entry.
      const seqs = (await store.latestOfPending('snapshot')).filter((seq) => seq <= after);
      await sendEntries(store, connection, seqs);
    }
    followJournal(store, connection, {
      ...{ taskId: null, after, endsAfter: 0, closing: null, onError },
    });
  };
  return {
    task: (connection, view, after) => run(connection, () => streamTask(connection, view, after)),
    every: (connection, after) => run(connection, () => streamAll(connection, after)),
  };
};
