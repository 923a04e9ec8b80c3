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
  /** Called in the turn of the event loop that read the last entry. `ended`: it ends an attempt. */
  readonly onCaughtUp: (seq: number, ended: boolean) => void;
}

/**
 * Sends the journal's entries, no faster than the client reads. Errors go to `onError` and end the
 * stream.
 */
export const createJournalReplay = (
  store: Pick<EntryReads, 'read'>,
  onError: (error: unknown) => void,
): ((job: ReplayJob) => void) => {
  const read = (taskId: string | null, after: number, limit: number): readonly Entry[] =>
    store.read({ ...(taskId === null ? {} : { taskId }), after, limit });

  /** An end that another attempt follows is not the end of a task's stream. */
  const isEnd = ({ taskId, endsAfter }: ReplayJob, entry: Entry): boolean =>
    entry.type === 'stream_closed' &&
    entry.seq > endsAfter &&
    read(taskId, entry.seq, 1).length === 0;

  const send = (job: ReplayJob, entries: readonly Entry[]): void =>
    job.connection.write(
      entries
        .filter(
          (entry) => job.taskId === null || entry.type !== 'stream_closed' || isEnd(job, entry),
        )
        .map(sseFrame)
        .join(''),
    );

  const sendFirst = async (connection: SseConnection, seqs: readonly number[]): Promise<void> => {
    for (let at = 0; at < seqs.length && !connection.closed(); at += framesPerRead) {
      const entries = seqs.slice(at, at + framesPerRead).flatMap((seq) => read(null, seq - 1, 1));
      connection.write(entries.map(sseFrame).join(''));
      await connection.drained();
    }
  };

  const sendAll = async (job: ReplayJob): Promise<void> => {
    const { connection, taskId, first = [] } = job;
    await sendFirst(connection, first);
    for (let last: Entry | undefined; !connection.closed(); await connection.drained()) {
      const entries = read(taskId, last?.seq ?? job.from, framesPerRead);
      if (entries.length === 0)
        return job.onCaughtUp(last?.seq ?? job.from, last !== undefined && isEnd(job, last));
      send(job, entries);
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
