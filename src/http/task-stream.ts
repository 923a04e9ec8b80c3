import type { Journal } from '../actors/journal/journal.ts';
import { finalStatuses, type TaskView } from '../actors/journal/task-view.ts';
import type { EntryReads } from '../actors/store/port.ts';
import { plural } from '../machines/plural.ts';
import { type Batch, type Broadcast, createBroadcast } from './broadcast.ts';
import { createJournalReplay, type Following } from './journal-replay.ts';
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

/**
 * A live reader that is further behind gets `gap` with the id to resume from, and its stream ends.
 */
const readerBytesAtMost = 1024 * 1024;

const followJournal = (
  broadcast: Broadcast,
  connection: SseConnection,
  taskId: string | null,
): Following => {
  /** Until the reader has read the journal to its end. */
  let gathered: Batch[] | null = [];
  let seq = 0;
  const write = (batch: Batch): void => {
    const [first] = batch.entries;
    const rest = batch.entries.filter((entry) => entry.seq > seq);
    if (first !== undefined && first.seq > seq) connection.share(batch.frames);
    else connection.write(rest.map(sseFrame).join(''));
  };
  const send = (batch: Batch): void => {
    if (batch.lastSeq <= seq) return;
    const late = connection.buffered() > readerBytesAtMost;
    if (late) {
      const message = `this reader is too far behind; reconnect with Last-Event-ID: ${seq}`;
      connection.write(
        controlFrame('gap', { taskId, attempt: batch.attempt }, { resume_from: seq, message }),
      );
    } else write(batch);
    seq = batch.lastSeq;
    if (!late && !(taskId !== null && batch.ended)) return;
    leave();
    connection.end();
  };
  const leave = broadcast.join(taskId, (batch) => {
    if (gathered === null) send(batch);
    else gathered.push(batch);
  });
  connection.onClose(leave);
  return {
    leave,
    begin: (from) => {
      const batches = gathered ?? [];
      gathered = null;
      seq = from;
      for (const batch of batches) send(batch);
    },
  };
};

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

export const createStreams = (
  store: EntryReads,
  journal: Journal,
  onError: (error: unknown) => void,
): Streams => {
  const broadcast = createBroadcast(journal);
  const replay = createJournalReplay(store, onError);
  const follow = (connection: SseConnection, taskId: string | null) => () =>
    followJournal(broadcast, connection, taskId);
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
    replay({
      connection,
      taskId,
      from: after ?? (await startWithoutId(store, connection, view, isOver)),
      endsAfter: view.status === 'queued' ? await store.lastSeq() : 0,
      follow: follow(connection, taskId),
      onCaughtUp: (seq, ended, following) => {
        if (!ended && !isOver) return following.begin(seq);
        following.leave();
        const data = { task_id: taskId, message: `task is ${view.status}` };
        if (!ended) connection.write(controlFrame('stream_closed', subject, data));
        connection.end();
      },
    });
  };
  const streamAll = async (connection: SseConnection, after: number | null): Promise<void> => {
    const from = after ?? (await store.lastSeq());
    const subject = { taskId: null, attempt: 0 };
    connection.write(controlFrame('connected', subject, { message: 'connected to every task' }));
    if (await tellRemoved(store, connection, subject, after)) return;
    replay({
      connection,
      taskId: null,
      from,
      first: after === null ? await store.latestOfPending('snapshot') : [],
      endsAfter: 0,
      follow: follow(connection, null),
      onCaughtUp: (seq, _, following) => following.begin(seq),
    });
  };
  return {
    task: (connection, view, after) => run(connection, () => streamTask(connection, view, after)),
    every: (connection, after) => run(connection, () => streamAll(connection, after)),
  };
};
