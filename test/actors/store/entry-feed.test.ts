import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { createEntryFeed } from '../../../src/actors/store/entry-feed.ts';
import type { Entry } from '../../../src/actors/store/port.ts';

/** A journal that several servers write, and the feed of one of them. */
const createShared = () => {
  const journal: Entry[] = [];
  let reads = 0;
  const feed = createEntryFeed(
    async (taskId, after, limit) => {
      reads += 1;
      const found = journal.filter(
        (entry) => entry.seq > after && (taskId === null || entry.taskId === taskId),
      );
      await delay(0);
      return found.slice(0, limit);
    },
    () => journal.length,
  );
  const add = (taskId: string): Entry => {
    const entry: Entry = {
      ...{ seq: journal.length + 1, taskId, taskSeq: 1, attempt: 1, type: 'log' },
      ...{ at: 0, data: '{}', cause: null },
    };
    journal.push(entry);
    return entry;
  };
  const follow = (taskId: string | null): readonly number[] => {
    const seen: number[] = [];
    feed.subscribe(
      {
        entries: (entries) => void seen.push(...entries.map(({ seq }) => seq)),
        failed: (error) => {
          throw error;
        },
      },
      taskId === null ? {} : { taskId },
    );
    return seen;
  };
  const seqsOf = (taskId: string | null): readonly number[] =>
    journal.flatMap((entry) => (taskId === null || entry.taskId === taskId ? [entry.seq] : []));
  return { journal, feed, add, follow, seqsOf, reads: () => reads };
};

/** Longer than the feed rests. */
const afterRestMs = 60;

test('commits of this server and of others are given in order, whole and once', async () => {
  const step = fc.record({
    isOwn: fc.boolean(),
    taskId: fc.constantFrom('bd-a', 'bd-b'),
    pauseMs: fc.constantFrom(null, 0, 1, 30),
    isHeardOf: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { journal, feed, add, follow, seqsOf } = createShared();
      const followed = [null, 'bd-a', 'bd-b'].map((taskId) => ({ taskId, seen: follow(taskId) }));
      for (const { isOwn, taskId, pauseMs, isHeardOf } of steps) {
        const entry = add(taskId);
        if (isOwn) feed.committed([entry]);
        else if (isHeardOf) feed.committedElsewhere(entry.seq);
        if (pauseMs !== null) await delay(pauseMs);
      }
      feed.committedElsewhere(journal.length);
      await delay(afterRestMs);
      await vi.waitFor(() => {
        for (const { taskId, seen } of followed) expect(seen).toEqual(seqsOf(taskId));
      }, 5_000);
      feed.close();
    }),
    { numRuns: 25 },
  );
});

test('many commits of others cost few reads', async () => {
  const { feed, add, follow, reads, seqsOf } = createShared();
  const seen = follow(null);
  const began = performance.now();
  for (let n = 0; n < 100; n += 1) {
    feed.committedElsewhere(add('bd-a').seq);
    await delay(1);
  }
  await delay(afterRestMs);
  const rests = Math.ceil((performance.now() - began) / 25);

  expect(seen).toEqual(seqsOf(null));
  // One that finds entries, and one more when it was told of newer ones meanwhile.
  expect(reads()).toBeLessThanOrEqual(2 * rests);
  feed.close();
});

test('who leaves with the entries that it got is told nothing more', async () => {
  const { feed, add } = createShared();
  add('bd-a');
  const told: string[] = [];
  const leave = feed.subscribe(
    {
      entries: () => {
        told.push('entries');
        leave();
      },
      caughtUp: () => void told.push('caught up'),
      failed: (error) => {
        throw error;
      },
    },
    { after: 0 },
  );
  await delay(afterRestMs);

  expect(told).toEqual(['entries']);
  feed.close();
});
