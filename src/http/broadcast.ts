import { frameText } from '../actors/journal/event-types.ts';
import type { Journal } from '../actors/journal/journal.ts';
import type { Entry } from '../actors/store/port.ts';
import { type SharedFrames, shareFrames } from './sse.ts';

/** What one turn of the event loop committed for the readers of a task, encoded once for all of them. */
export interface Batch {
  readonly frames: SharedFrames;
  readonly lastSeq: number;
  readonly attempt: number;
  /** Whether the last frame is the end of an attempt. */
  readonly ended: boolean;
}

export type BatchListener = (batch: Batch) => void;

/** The live end of the journal. */
export interface Broadcast {
  /**
   * Delivers what is committed from now on, for one task or for all (null). What was committed before is delivered to
   * the others first, so that a reader who has read the journal to its end joins without gap or duplicate.
   */
  join(taskId: string | null, listener: BatchListener): () => void;
}

/** A frame of the journal as it goes over the wire (CONTRACT 5). Its data is JSON, so it holds no line break. */
export const sseFrame = (entry: Entry): string =>
  `id: ${entry.seq}\nevent: ${entry.type}\ndata: ${frameText(entry)}\n\n`;

const batchOf = (entries: readonly Entry[]): Batch | null => {
  const last = entries.at(-1);
  if (last === undefined) return null;
  return {
    frames: shareFrames(entries.map(sseFrame).join('')),
    lastSeq: last.seq,
    attempt: last.attempt,
    ended: last.type === 'stream_closed',
  };
};

export const createBroadcast = (journal: Journal): Broadcast => {
  const readers = new Map<string | null, Set<BatchListener>>();
  let fresh: Entry[] = [];
  let scheduled = false;

  const tell = (key: string | null, entries: readonly Entry[]): void => {
    const listeners = readers.get(key);
    if (listeners === undefined) return;
    const batch = batchOf(entries);
    if (batch !== null) for (const listener of [...listeners]) listener(batch);
  };
  const deliver = (): void => {
    scheduled = false;
    const entries = fresh;
    fresh = [];
    const byTask = new Map<string, Entry[]>();
    for (const entry of entries) {
      const own = byTask.get(entry.taskId);
      if (own === undefined) byTask.set(entry.taskId, [entry]);
      else own.push(entry);
    }
    for (const [taskId, own] of byTask) tell(taskId, own);
    tell(null, entries);
  };

  journal.onCommit((entries) => {
    if (readers.size === 0) return;
    fresh.push(...entries);
    if (!scheduled) setImmediate(deliver);
    scheduled = true;
  });

  return {
    join: (taskId, listener) => {
      if (fresh.length > 0) deliver();
      const listeners = readers.get(taskId) ?? new Set();
      readers.set(taskId, listeners.add(listener));
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && readers.get(taskId) === listeners) readers.delete(taskId);
      };
    },
  };
};
