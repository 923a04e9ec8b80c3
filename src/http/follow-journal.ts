import type { Entry, EntryReads } from '../actors/store/port.ts';
import { type SharedFrames, type SseConnection, shareFrames } from './sse.ts';
import { controlFrame, sseFrame } from './stream-frames.ts';

/**
 * A live reader that is further behind gets `gap` with the id to resume from, and its stream ends.
 */
const readerBytesAtMost = 1024 * 1024;

export interface Following {
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
export const followJournal = (
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
