import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { readFrames } from '../support/sse.ts';
import { type Expected, type ExpectedTask, followTracker } from './expected.ts';
import type { Real } from './settle.ts';

const terminal: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);
type Entry = { readonly type: string; readonly seq: number; readonly attempt: number };

const requireStream = async (task: ExpectedTask, { server }: Real): Promise<void> => {
  const history = async () =>
    ((await server.call('history', { task_id: task.id })).result as { entries: readonly Entry[] })
      .entries;
  const told = (entries: readonly Entry[]) =>
    entries.filter(({ type }) => type !== 'stream_closed');
  const last = told(await history()).at(-1);
  if (last === undefined) return expect(task.ends).toEqual([]);
  const { status } = (await server.call('status', { task_id: task.id })).result as {
    status: string;
  };
  // The stream of a task that is not over stays open.
  const isOver = ['complete', 'failed', 'cancelled'].includes(status);

  const frames = await readFrames(
    `${server.base}/stream/${task.id}?after=0`,
    server.headers,
    ({ id, event }) => event === 'stream_closed' || (!isOver && id === last.seq),
  );

  const seen = frames.filter(({ id, event }) => id !== null && event !== 'stream_closed');
  const upTo = seen.at(-1)?.id ?? 0;
  // What others did in the tracker may have been noticed meanwhile.
  const entries = (await history()).filter(({ seq }) => seq <= upTo);
  const ids = seen.map(({ id }) => id);
  expect(ids, task.id).toEqual(told(entries).map(({ seq }) => seq));
  expect(upTo).toBeGreaterThanOrEqual(last.seq);
  expect(entries.every(({ seq }, index) => seq > (entries[index - 1]?.seq ?? 0))).toBe(true);
  expect(entries.every(({ attempt }, index) => attempt >= (entries[index - 1]?.attempt ?? 0))).toBe(
    true,
  );
  const ends = seen.flatMap(({ event }) => (terminal.has(event) ? [event] : []));
  // A task that others closed while it was at rest here is told of when it is noticed.
  const noticed = { ...task, ends: [...task.ends] };
  followTracker(noticed);
  expect([task.ends, noticed.ends], task.id).toContainEqual(ends);
};

const noticeMs = 6_000;

/** Waits for what the service has still to notice in the tracker. */
const untilTold = async (task: ExpectedTask, real: Real): Promise<void> => {
  for (const began = Date.now(); ; await delay(100))
    try {
      return await requireStream(task, real);
    } catch (error) {
      if (Date.now() - began > noticeMs) throw error;
    }
};

/**
 * Reads the stream of each task from its beginning: every frame of the journal once, in order, and
 * each end once.
 */
export const requireStreams = async ({ tasks }: Expected, real: Real): Promise<void> => {
  for (const task of tasks) await untilTold(task, real);
};
