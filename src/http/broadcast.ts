import type { Journal } from '../actors/journal/journal.ts';
import type { Entry } from '../actors/store/port.ts';
import { type SharedFrames, shareFrames } from './sse.ts';
import { sseFrame } from './stream-frames.ts';

/**
 * The entries that one turn of the event loop committed for a task (or for all tasks), encoded once
 * for all readers.
 */
export interface Batch {
  readonly entries: readonly Entry[];
  readonly frames: SharedFrames;
  readonly lastSeq: number;
  readonly attempt: number;
  readonly ended: boolean;
}

export type BatchListener = (batch: Batch) => void;

export interface Broadcast {
  /**
   * Sends what is committed from now on, for one task or for all (null). Entries committed before
   * go to the other readers first. @returns leaves
   */
  join(taskId: string | null, listener: BatchListener): () => void;
}

const batchOf = (entries: readonly Entry[]): Batch | null => {
  const last = entries.at(-1);
  if (last === undefined) return null;
  return {
    entries,
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

  const deliverTo = (key: string | null, entries: readonly Entry[]): void => {
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
    for (const [taskId, own] of byTask) deliverTo(taskId, own);
    deliverTo(null, entries);
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
