import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { KeptEntry } from '../../src/actors/store/port.ts';
import { bash, finish, startServer, untilStatus } from '../support/running.ts';

type OnTheWire = Omit<KeptEntry, 'taskId' | 'taskSeq'> & {
  readonly task_id: string;
  readonly task_seq: number;
};

/** As `docs/guides/operating.md` says. */
const hashOf = (entry: OnTheWire): string => {
  const { previous, seq, task_id, attempt, type, at, data, cause, base } = entry;
  const fields = [previous, seq, task_id, attempt, type, at, data, cause, base];
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex');
};
const isChain = (entries: readonly OnTheWire[]): boolean =>
  entries.every(
    (entry, n) => entry.hash === hashOf(entry) && entry.previous === (entries[n - 1]?.hash ?? ''),
  );

test('a client can prove by the hashes that no entry of a journal was changed, added or left out', async () => {
  const server = await startServer({ turns: [bash('echo hello'), finish()] });
  const { task_id } = (await server.call('create', { description: 'a task' })).result;
  await server.call('execute', { task_id, role: 'engineer' });
  await untilStatus(server, task_id, 'complete');
  const entries: OnTheWire[] = [];
  for (let after_seq: number | undefined = 0; after_seq !== undefined; ) {
    const page = { task_id, after_seq, limit: 5, kept: true };
    const { result } = await server.call('history', page);
    entries.push(...result.entries);
    after_seq = result.next_after;
  }

  const frames = (await server.call('history', { task_id })).result.entries;
  expect(entries.map(({ seq }) => seq)).toEqual(frames.map((frame: OnTheWire) => frame.seq));
  expect(entries.map(({ task_seq }) => task_seq)).toEqual(entries.map((_, n) => n + 1));
  expect(entries.length).toBeGreaterThan(10);
  expect(isChain(entries)).toBe(true);

  const [first, second, ...rest] = entries as [OnTheWire, OnTheWire, ...OnTheWire[]];
  expect(isChain([first, ...rest])).toBe(false);
  expect(isChain([second, first, ...rest])).toBe(false);
  expect(isChain([first, { ...second, data: '{}' }, ...rest])).toBe(false);
});
