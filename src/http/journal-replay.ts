import type { Entry, EntryReads } from '../actors/store/port.ts';
import type { SseConnection } from './sse.ts';
import { sseFrame } from './stream-frames.ts';

const framesPerRead = 256;

export interface ReplayJob {
  readonly connection: SseConnection;
  /** Null: every task. */
  readonly taskId: string | null;
  readonly from: number;
  /** Rising seqs up to `from`, of single entries to send first. */
  readonly first?: readonly number[];
  /** Ends up to this seq belong to earlier attempts. */
  readonly endsAfter: number;
  /** Gathers what is committed from now on. Called before a read that may be the last one. */
  readonly follow: () => Following;
  /** `seq`: the last entry that was sent. `ended`: it ends an attempt. */
  readonly onCaughtUp: (seq: number, ended: boolean, following: Following) => void;
}

/** A reader of new entries, from before its last read of the journal. */
export interface Following {
  /** Sends what was gathered after `seq`, and what comes from now on. */
  begin(seq: number): void;
  leave(): void;
}

/**
 * Sends the journal's entries, no faster than the client reads. Errors go to `onError` and end the
 * stream.
 */
export const createJournalReplay = (
  store: Pick<EntryReads, 'read'>,
  onError: (error: unknown) => void,
): ((job: ReplayJob) => void) => {
  const read = async (taskId: string | null, after: number, limit: number) =>
    store.read({ ...(taskId === null ? {} : { taskId }), after, limit });

  /** An end that another attempt follows is not the end of a task's stream. */
  const isEnd = async ({ taskId, endsAfter }: ReplayJob, entry: Entry): Promise<boolean> =>
    entry.type === 'stream_closed' &&
    entry.seq > endsAfter &&
    (await read(taskId, entry.seq, 1)).length === 0;

  const isSent = async (job: ReplayJob, entry: Entry): Promise<boolean> =>
    job.taskId === null || entry.type !== 'stream_closed' || isEnd(job, entry);

  const send = async (job: ReplayJob, entries: readonly Entry[]): Promise<void> => {
    const sent = await Promise.all(entries.map((entry) => isSent(job, entry)));
    job.connection.write(
      entries
        .filter((_, index) => sent[index])
        .map(sseFrame)
        .join(''),
    );
  };

  const sendFirst = async (connection: SseConnection, seqs: readonly number[]): Promise<void> => {
    for (let at = 0; at < seqs.length && !connection.closed(); at += framesPerRead) {
      const some = seqs.slice(at, at + framesPerRead);
      const entries = (await Promise.all(some.map((seq) => read(null, seq - 1, 1)))).flat();
      connection.write(entries.map(sseFrame).join(''));
      await connection.drained();
    }
  };

  /** The next entries; at the end of the journal also who follows it from there. */
  const readOrFollow = async (job: ReplayJob, after: number) => {
    const entries = await read(job.taskId, after, framesPerRead);
    if (entries.length > 0) return { entries, following: null };
    const following = job.follow();
    try {
      const more = await read(job.taskId, after, framesPerRead);
      if (more.length === 0) return { entries: more, following };
      following.leave();
      return { entries: more, following: null };
    } catch (error) {
      following.leave();
      throw error;
    }
  };

  const sendAll = async (job: ReplayJob): Promise<void> => {
    const { connection, first = [] } = job;
    await sendFirst(connection, first);
    for (let last: Entry | undefined; !connection.closed(); await connection.drained()) {
      const seq = last?.seq ?? job.from;
      const { entries, following } = await readOrFollow(job, seq);
      if (following !== null) {
        const ended = last !== undefined && (await isEnd(job, last));
        return job.onCaughtUp(seq, ended, following);
      }
      await send(job, entries);
      last = entries.at(-1);
    }
  };

  return (job) => {
    sendAll(job).catch((error: unknown) => {
      onError(error);
      job.connection.end();
    });
  };
};
