import type { Journal } from '../actors/journal/journal.ts';
import { finalStatuses, type TaskView } from '../actors/journal/task-view.ts';
import type { EntryReads } from '../actors/store/port.ts';
import { plural } from '../machines/plural.ts';
import { type Broadcast, createBroadcast } from './broadcast.ts';
import { createJournalReplay } from './journal-replay.ts';
import type { SseConnection } from './sse.ts';
import { controlFrame, snapshotFrame } from './stream-frames.ts';

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

/**
 * A live reader that is further behind gets `gap` with the id to resume from, and its stream ends.
 */
const readerBytesAtMost = 1024 * 1024;

/** `from` is the seq of the last entry that the reader got. */
const followJournal = (
  broadcast: Broadcast,
  connection: SseConnection,
  taskId: string | null,
  from: number,
): void => {
  let seq = from;
  const leave = broadcast.join(taskId, (batch) => {
    const late = connection.buffered() > readerBytesAtMost;
    if (late) {
      const message = `this reader is too far behind; reconnect with Last-Event-ID: ${seq}`;
      connection.write(
        controlFrame('gap', { taskId, attempt: batch.attempt }, { resume_from: seq, message }),
      );
    } else connection.share(batch.frames);
    seq = batch.lastSeq;
    if (!late && !(taskId !== null && batch.ended)) return;
    leave();
    connection.end();
  });
  connection.onClose(leave);
};

/** Starts at the latest snapshot, or at 0 when the task is over. */
const startWithoutId = (
  store: EntryReads,
  connection: SseConnection,
  view: TaskView,
  isOver: boolean,
): number => {
  const latest = store.latest(view.task_id, 'snapshot');
  if (latest !== null) return isOver ? 0 : latest.seq - 1;
  const seq = store.lastSeq();
  connection.write(snapshotFrame(seq, view));
  return seq;
};

/**
 * Tells a reader that entries after its id were removed, and ends its stream. @returns false when
 * none were
 */
const tellRemoved = (
  store: EntryReads,
  connection: SseConnection,
  subject: { readonly taskId: string | null; readonly attempt: number },
  after: number | null,
): boolean => {
  const removed = after === null ? null : store.removed(subject.taskId);
  if (after === null || removed === null || after >= removed.seq) return false;
  const message = `what was before was removed after ${plural(removed.days, 'day')}; reconnect with Last-Event-ID: ${removed.seq}`;
  connection.write(controlFrame('gap', subject, { resume_from: removed.seq, message }));
  connection.end();
  return true;
};

export const createStreams = (
  store: EntryReads,
  journal: Journal,
  onError: (error: unknown) => void,
): Streams => {
  const broadcast = createBroadcast(journal);
  const replay = createJournalReplay(store, onError);
  return {
    task: (connection, view, after) => {
      const taskId = view.task_id;
      const subject = { taskId, attempt: view.attempt };
      const isOver = finalStatuses.has(view.status);
      connection.write(
        controlFrame('connected', subject, { task_id: taskId, message: `connected to ${taskId}` }),
      );
      if (tellRemoved(store, connection, subject, after)) return;
      replay({
        connection,
        taskId,
        from: after ?? startWithoutId(store, connection, view, isOver),
        endsAfter: view.status === 'queued' ? store.lastSeq() : 0,
        onCaughtUp: (seq, ended) => {
          if (!ended && !isOver) return followJournal(broadcast, connection, taskId, seq);
          const data = { task_id: taskId, message: `task is ${view.status}` };
          if (!ended) connection.write(controlFrame('stream_closed', subject, data));
          connection.end();
        },
      });
    },
    every: (connection, after) => {
      const from = after ?? store.lastSeq();
      const subject = { taskId: null, attempt: 0 };
      connection.write(controlFrame('connected', subject, { message: 'connected to every task' }));
      if (tellRemoved(store, connection, subject, after)) return;
      replay({
        connection,
        taskId: null,
        from,
        first: after === null ? store.latestOfPending('snapshot') : [],
        endsAfter: 0,
        onCaughtUp: (seq) => followJournal(broadcast, connection, null, seq),
      });
    },
  };
};
