import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createLeaseKeeper } from '../../../src/actors/engine/servers/lease.ts';
import { charts } from '../../../src/actors/journal/chart-versions.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { bash, finish, hang, startSystem, untilStatus } from '../../support/running.ts';

const shared = {
  name: 'a',
  facts: { version: '1', startedAt: 0, pool: 1, roles: null },
  onDatabaseLost: () => {},
};

test('a server has the attempts that it runs, and takes over those of an earlier one', async () => {
  const options = { onInterrupted: 'repeat' as const };
  const setting = {
    turns: [bash('until [ -e go ]; do sleep 0.02; done'), finish('done')],
    options,
  };
  const first = await startSystem(setting);
  const { task_id } = await first.service.create({ description: 'x' });
  await first.service.execute({ task: task_id, role: 'engineer', options: {} });
  await vi.waitFor(async () => expect((await first.service.status(task_id)).phase).toBe('acting'));
  const before = first.store.actor(task_id)?.owner;
  await first.stop();

  const { root, stateDir } = first;
  const next = await startSystem({ ...setting, root, stateDir });
  const after = next.store.actor(task_id)?.owner;
  writeFileSync(join(root, 'go'), '');
  await untilStatus(next, task_id, 'complete');

  expect(before).toMatch(/^\d{4}-\d\d-\d\dT.*Z-[0-9a-f]{6}$/);
  expect([after === before, typeof after]).toEqual([false, 'string']);
  expect(next.store.actor(task_id)?.owner).toBeNull();
  expect(next.store.attempts(task_id).map(({ owner }) => owner)).toEqual([after]);
});

test('a server whose attempts another one has taken over saves nothing more, and is told to end', async () => {
  const onLeaseLost = vi.fn();
  const first = await startSystem({
    turns: [hang],
    onLeaseLost,
    options: { leaseMs: 60 },
    tampered: true,
  });
  const { task_id } = await first.service.create({ description: 'x' });
  await first.service.execute({ task: task_id, role: 'engineer', options: {} });
  await vi.waitFor(async () => expect((await first.service.status(task_id)).phase).toBe('acting'));
  await first.system.journal.flush();
  const other = createSqliteStore({ file: `${first.stateDir}/journal.db`, redact: (text) => text });

  other.join({ charts, node: 'other', leaseMs: 60_000, name: '*' });
  const last = other.lastSeq();
  const refused = await first.service.cancel(task_id, null).catch((error: unknown) => error);
  await vi.waitFor(() => expect(onLeaseLost).toHaveBeenCalledTimes(1));

  expect(String(refused)).toContain('another server has taken over');
  expect([other.lastSeq(), other.actor(task_id)?.owner]).toEqual([last, 'other']);
  other.close();
});

test('a server whose database was removed acknowledges nothing more, and is told to end', async () => {
  const onLeaseLost = vi.fn();
  const { service, system, stateDir } = await startSystem({
    turns: [hang],
    onLeaseLost,
    options: { leaseMs: 60 },
    tampered: true,
  });
  const { task_id } = await service.create({ description: 'x' });
  await system.journal.flush();
  const file = join(stateDir, 'journal.db');
  renameSync(file, `${file}.gone`);

  const refusals = await Promise.all(
    [service.create({ description: 'lost' }), service.cancel(task_id, null)].map((call) =>
      call.catch((error: unknown) => String(error)),
    ),
  );
  await vi.waitFor(() => expect(onLeaseLost).toHaveBeenCalledTimes(1));

  for (const refusal of refusals) expect(refusal).toContain('was removed or replaced');
  // So that the server of the test can end.
  renameSync(`${file}.gone`, file);
});

test('a pending task that another server has is not taken up, one that nobody has is', async () => {
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const pending = (id: string, node: string, attempt: number, number: number) =>
    store.commit(
      { entries: [], commit: { node, number } },
      {
        actor: { id, taskId: id, version: 1, pending: true, changedAt: 1, snapshot: '{}' },
        guard: { revision: 0, attempt },
        entries: [],
      },
    );
  await pending('bd-ours', 'a', 1, 1);
  await pending('bd-theirs', 'b', 1, 1);
  await pending('bd-waits', 'b', 0, 2);
  const nobodys = {
    id: 'bd-x',
    taskId: 'bd-x',
    version: 1,
    pending: true,
    changedAt: 1,
    snapshot: '{}',
  };
  await store.commit({ actor: nobodys, entries: [] });

  expect(await store.pendingOf('a')).toEqual(['bd-ours']);
});

test('a lease is renewed while nothing is committed', async () => {
  const { store, logged } = await startSystem({ options: { leaseMs: 500 } });
  await delay(700);

  // Were it over, this one would take over.
  store.join({ charts, node: 'other', leaseMs: 60_000, name: 'other' });
  store.takeOverFrom('other', 'leftOrSilent', charts);
  await delay(700);

  expect(logged).toEqual([]);
});

test('a server takes over from a silent one, but not just after its own renewal was late', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const leaseMs = 3_000;
  store.join({ charts, node: 'silent', name: 'b', leaseMs });
  let lateMs = 0;
  const log = vi.fn();
  const keeper = createLeaseKeeper({
    ...{ node: 'a', leaseMs, onLost: () => {}, log },
    store: {
      ...store,
      renew: async (node) => {
        await new Promise((resolve) => setTimeout(resolve, lateMs));
        return store.renew(node);
      },
    },
    shared,
  });
  await keeper.start(async () => {});
  lateMs = 1_500;
  await vi.advanceTimersByTimeAsync(2_600);
  lateMs = 0;

  await vi.advanceTimersByTimeAsync(1_500);
  const takes = (): number =>
    log.mock.calls.filter(([message]) => String(message).startsWith('took over')).length;
  const tooEarly = takes();
  await vi.advanceTimersByTimeAsync(3_000);

  expect([tooEarly, takes()]).toEqual([0, 1]);
  await keeper.stop();
  store.close();
});

test('a server that drains takes over from no other one', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const leaseMs = 3_000;
  store.join({ charts, node: 'silent', name: 'b', leaseMs });
  const keeper = createLeaseKeeper({
    ...{ node: 'a', leaseMs, store, onLost: () => {}, log: () => {} },
    shared,
  });
  await keeper.start(async () => {});

  keeper.takeNoMore();
  keeper.look();
  await vi.advanceTimersByTimeAsync(3 * leaseMs);

  expect((await store.nodes()).map(({ node, state }) => [node, state])).toEqual([
    ['a', 'live'],
    ['silent', 'silent'],
  ]);
  await keeper.stop();
  store.close();
});

test('a server whose renewal gets no answer ends before its lease is over', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const leaseMs = 10_000;
  const onLost = vi.fn();
  let isSilent = false;
  const keeper = createLeaseKeeper({
    ...{ node: 'a', leaseMs, onLost, log: () => {} },
    store: {
      ...store,
      renew: (node) => (isSilent ? new Promise<never>(() => {}) : store.renew(node)),
    },
    shared,
  });
  await keeper.start(async () => {});
  await vi.advanceTimersByTimeAsync(4_000);
  const renewedMs = performance.now();
  isSilent = true;

  await vi.advanceTimersByTimeAsync(8_000);
  const early = onLost.mock.calls.length;
  await vi.advanceTimersByTimeAsync(leaseMs - 8_000);

  expect([early, onLost.mock.calls.length]).toEqual([0, 1]);
  expect(performance.now() - renewedMs).toBeLessThanOrEqual(leaseMs);
});
