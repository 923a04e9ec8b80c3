import type { Journal } from '../actors/journal/journal.ts';
import type { Entry, Store } from '../actors/store/port.ts';
import type { TaskView } from '../machines/task-view.ts';
import { createBroadcast, sseFrame } from './broadcast.ts';
import type { SseConnection } from './sse.ts';

export interface Streams {
  /**
   * The frames of one task (CONTRACT 5): `connected`, then what came after the given id or the latest snapshot, then
   * live, to the end of the running attempt. A task that is over is replayed and closed.
   */
  task(connection: SseConnection, view: TaskView, after: number | null): void;
  /** The frames of every task of the server: what came after the given id or the latest snapshot of each at work, then live. */
  every(connection: SseConnection, after: number | null): void;
}

const finalStatuses: ReadonlySet<string> = new Set(['complete', 'failed', 'cancelled']);
const entriesPerRead = 256;
/** What a reader may be behind in a live stream before it is told where to resume, and let go (rule R19). */
const readerBytesAtMost = 1024 * 1024;

interface Control {
  readonly taskId: string | null;
  readonly attempt: number;
}

/** A frame that the journal does not hold and that a reader cannot resume from, so without an id. */
const controlFrame = (type: 'connected' | 'stream_closed' | 'gap', about: Control, data: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({
    type,
    task_id: about.taskId,
    attempt: about.attempt,
    timestamp: new Date().toISOString(),
    data,
  })}\n\n`;

/**
 * The snapshot of a task that the journal does not know yet. It stands at the end of the journal of all tasks: whatever
 * comes for this one has a higher seq.
 */
const snapshotAt = (seq: number, task: TaskView): string =>
  sseFrame({
    seq,
    taskId: task.task_id,
    attempt: task.attempt,
    type: 'snapshot',
    at: Date.now(),
    data: JSON.stringify({ machine: 'task', value: task.status, tags: [], task }),
    cause: null,
  });

interface ReplayJob {
  readonly connection: SseConnection;
  readonly taskId: string | null;
  readonly from: number;
  /** Seqs up to `from`, rising, of single entries that are sent first. */
  readonly first?: readonly number[];
  /** Ends up to this seq are those of earlier runs. */
  readonly endsAfter: number;
  /** Called in the very turn in which nothing is left to read, with the last seq and whether an attempt ended there. */
  readonly onCaughtUp: (seq: number, ended: boolean) => void;
}

export const createStreams = (store: Store, journal: Journal, onError: (error: unknown) => void): Streams => {
  const broadcast = createBroadcast(journal);
  const read = (taskId: string | null, after: number, limit: number): readonly Entry[] =>
    store.read({ ...(taskId === null ? {} : { taskId }), after, limit });

  /** In the stream of one task, an end with another attempt behind it is no end. */
  const isEnd = ({ taskId, endsAfter }: ReplayJob, entry: Entry): boolean =>
    entry.type === 'stream_closed' && entry.seq > endsAfter && read(taskId, entry.seq, 1).length === 0;

  const send = (job: ReplayJob, entries: readonly Entry[]): void =>
    job.connection.write(
      entries
        .filter((entry) => job.taskId === null || entry.type !== 'stream_closed' || isEnd(job, entry))
        .map(sseFrame)
        .join(''),
    );

  const sendFirst = async (connection: SseConnection, seqs: readonly number[]): Promise<void> => {
    for (let at = 0; at < seqs.length && !connection.closed(); at += entriesPerRead) {
      const entries = seqs.slice(at, at + entriesPerRead).flatMap((seq) => read(null, seq - 1, 1));
      connection.write(entries.map(sseFrame).join(''));
      await connection.drained();
    }
  };

  const replayAll = async (job: ReplayJob): Promise<void> => {
    const { connection, taskId, first = [] } = job;
    await sendFirst(connection, first);
    for (let last: Entry | undefined; !connection.closed(); await connection.drained()) {
      const entries = read(taskId, last?.seq ?? job.from, entriesPerRead);
      if (entries.length === 0) return job.onCaughtUp(last?.seq ?? job.from, last !== undefined && isEnd(job, last));
      send(job, entries);
      last = entries.at(-1);
    }
  };

  /** Sends what the journal holds, no faster than the client takes it. */
  const replay = (job: ReplayJob): void => {
    replayAll(job).catch((error: unknown) => {
      onError(error);
      job.connection.end();
    });
  };

  const goLive = (connection: SseConnection, taskId: string | null, from: number): void => {
    let seq = from;
    const leave = broadcast.join(taskId, (batch) => {
      const late = connection.buffered() > readerBytesAtMost;
      if (late) {
        const message = `this reader is too far behind; come back with Last-Event-ID: ${seq}`;
        connection.write(controlFrame('gap', { taskId, attempt: batch.attempt }, { resume_from: seq, message }));
      } else connection.share(batch.frames);
      seq = batch.lastSeq;
      if (!late && !(taskId !== null && batch.ended)) return;
      leave();
      connection.end();
    });
    connection.onClose(leave);
  };

  /** Where a stream without an id starts: at the latest snapshot, or, when the task is over, at its beginning. */
  const start = (connection: SseConnection, view: TaskView, isOver: boolean): number => {
    const latest = store.latest(view.task_id, 'snapshot');
    if (latest !== null) return isOver ? 0 : latest.seq - 1;
    const seq = store.lastSeq();
    connection.write(snapshotAt(seq, view));
    return seq;
  };

  return {
    task: (connection, view, after) => {
      const taskId = view.task_id;
      const about = { taskId, attempt: view.attempt };
      const isOver = finalStatuses.has(view.status);
      connection.write(controlFrame('connected', about, { task_id: taskId, message: `connected to ${taskId}` }));
      replay({
        connection,
        taskId,
        from: after ?? start(connection, view, isOver),
        endsAfter: view.status === 'queued' ? store.lastSeq() : 0,
        onCaughtUp: (seq, ended) => {
          if (!ended && !isOver) return goLive(connection, taskId, seq);
          if (!ended)
            connection.write(
              controlFrame('stream_closed', about, { task_id: taskId, message: `task is ${view.status}` }),
            );
          connection.end();
        },
      });
    },
    every: (connection, after) => {
      const from = after ?? store.lastSeq();
      connection.write(controlFrame('connected', { taskId: null, attempt: 0 }, { message: 'connected to every task' }));
      replay({
        connection,
        taskId: null,
        from,
        first: after === null ? store.latestOfPending('snapshot') : [],
        endsAfter: 0,
        onCaughtUp: (seq) => goLive(connection, null, seq),
      });
    },
  };
};
