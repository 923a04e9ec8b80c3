import { frameJson, type SentEntry } from '../../actors/journal/event-types.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Entry, EntryReads } from '../../actors/store/port.ts';
import { plural } from '../../machines/plural.ts';
import { finalStatuses } from '../../machines/task.ts';
import { type SharedFrames, type SseConnection, shareFrames } from './sse.ts';

/** The data is JSON, so it has no line break. */
const sseFrame = (entry: SentEntry): string =>
  `id: ${entry.seq}\nevent: ${entry.type}\ndata: ${frameJson(entry)}\n\n`;

interface ControlSubject {
  /** Null in the stream of all tasks. */
  readonly taskId: string | null;
  readonly attempt: number;
}

/** A frame that is not in the journal. It has no id, since no reader can resume from it. */
const controlFrame = (
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
const snapshotFrame = (seq: number, task: TaskView): string =>
  sseFrame({
    seq,
    taskId: task.task_id,
    attempt: task.attempt,
    type: 'snapshot',
    at: Date.now(),
    data: JSON.stringify({ machine: 'task', value: task.status, tags: [], task }),
  });

/**
 * A live reader that is further behind gets `gap` with the id to resume from, and its stream ends.
 */
const readerBytesAtMost = 1024 * 1024;

interface Following {
  /** Null: every task. */
  readonly taskId: string | null;
  readonly after: number;
  /** Ends up to this seq belong to earlier attempts. */
  readonly endsAfter: number;
  /**
   * For a task that is over, the frame that is sent when all is sent and the last entry ends no
   * attempt; then the stream ends.
   */
  readonly closing: string | null;
  readonly onError: (error: unknown) => void;
}

const encodeFrames = (entries: readonly Entry[]): string => entries.map(sseFrame).join('');

/** The entries of a commit are encoded once for all their readers. */
const shared = new WeakMap<readonly Entry[], SharedFrames>();
const sharedFramesOf = (entries: readonly Entry[]): SharedFrames => {
  const frames = shared.get(entries) ?? shareFrames(encodeFrames(entries));
  shared.set(entries, frames);
  return frames;
};

const isEnd = ({ type }: Entry): boolean => type === 'stream_closed';

/**
 * Sends the entries of the journal, those before now no faster than the client reads. The stream of
 * a task ends with its attempt. Errors go to `onError` and end the stream.
 */
const followJournal = (
  store: Pick<EntryReads, 'subscribe'>,
  connection: SseConnection,
  { taskId, after, endsAfter, closing, onError }: Following,
): void => {
  let seq = after;
  let isLive = false;
  /** The end of an attempt, as long as nothing follows it. */
  let held: Entry | null = null;

  const sendEarlier = (entries: readonly Entry[]): Promise<void> => {
    const last = entries.at(-1);
    seq = last?.seq ?? seq;
    held = last !== undefined && isEnd(last) ? last : null;
    // An end that another attempt follows is not the end of a task's stream.
    connection.write(encodeFrames(entries.filter((entry) => taskId === null || !isEnd(entry))));
    return connection.drained();
  };
  const sendNew = (entries: readonly Entry[]): void => {
    const last = entries.at(-1);
    if (last === undefined) return;
    const isLate = connection.buffered() > readerBytesAtMost;
    if (isLate) {
      const message = `this reader is too far behind; reconnect with Last-Event-ID: ${seq}`;
      const { attempt } = last;
      connection.write(controlFrame('gap', { taskId, attempt }, { resume_from: seq, message }));
    } else connection.share(sharedFramesOf(entries));
    seq = last.seq;
    if (isLate || (taskId !== null && isEnd(last))) end();
  };
  const end = (): void => {
    leave();
    connection.end();
  };
  const leave = store.subscribe(
    {
      entries: (entries) => (isLive ? sendNew(entries) : sendEarlier(entries)),
      caughtUp: () => {
        isLive = true;
        const isOver = taskId !== null && held !== null && held.seq > endsAfter;
        if (isOver && held !== null) connection.write(sseFrame(held));
        else if (closing !== null) connection.write(closing);
        if (isOver || closing !== null) end();
      },
      failed: (error) => {
        onError(error);
        connection.end();
      },
    },
    { ...(taskId === null ? {} : { taskId }), after },
  );
  connection.onClose(leave);
};

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
      taskId: null,
      after,
      endsAfter: 0,
      closing: null,
      onError,
    });
  };
  return {
    task: (connection, view, after) => run(connection, () => streamTask(connection, view, after)),
    every: (connection, after) => run(connection, () => streamAll(connection, after)),
  };
};
