import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createActor } from 'xstate';
import { createObserver } from '../../../src/actors/engine/tasks/tracker-sync.ts';
import { createTrackerWatch } from '../../../src/actors/engine/tasks/watch-tracker.ts';
import { charts } from '../../../src/actors/journal/chart-versions.ts';
import { entry } from '../../../src/actors/journal/event-types.ts';
import { createJournal } from '../../../src/actors/journal/journal.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { taskMachine } from '../../../src/machines/task/task-machine.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { embeddedAt, ledgerAt, somebodyElse } from '../../support/ledger.ts';
import { finish, hang, startSystem } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

test('a change that could not be taken in is seen again by the next look', async () => {
  const root = temporaryFolder();
  const ledger = ledgerAt(root);
  const tracker = embeddedAt(root, {}, ledger);
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const seen: string[] = [];
  const observe = vi.fn(async ({ title }: { title: string }) => seen.push(title) > 0);
  observe.mockRejectedValueOnce(new Error('the disk is full'));
  const looks = vi.spyOn(tracker, 'changes');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const watch = createTrackerWatch({
    ...{ tracker, store, observe },
    ...{ isPending: () => false, onRest: () => {}, log: () => {} },
  });

  watch.start();
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
  await tracker.create({
    title: 'one',
    description: '',
    dependencies: [],
    priority: 2,
    labels: [],
  });
  await ledger.exchange.flush();
  for (const look of [2, 3]) {
    vi.advanceTimersToNextTimer();
    await vi.waitFor(() =>
      expect([looks.mock.calls.length, vi.getTimerCount()]).toEqual([look, 1]),
    );
  }

  await watch.stop();
  vi.useRealTimers();
  store.close();
  expect(seen).toEqual(['one']);
});

test('the pause before the next look does not grow with the time to report changes', async () => {
  const root = temporaryFolder();
  const ledger = ledgerAt(root);
  const tracker = embeddedAt(root, {}, ledger);
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const looks = vi.spyOn(tracker, 'changes');
  const observe = vi.fn(async () => {
    for (const end = performance.now() + 600; performance.now() < end; );
    return true;
  });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const watch = createTrackerWatch({
    ...{ tracker, store, observe },
    ...{ isPending: () => false, onRest: () => {}, log: () => {} },
  });

  watch.start();
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
  const task = { title: 'one', description: '', dependencies: [], priority: 2, labels: [] };
  await tracker.create(task);
  await ledger.exchange.flush();
  vi.advanceTimersToNextTimer();
  await vi.waitFor(() => expect([observe.mock.calls.length, vi.getTimerCount()]).toEqual([1, 1]));
  const before = looks.mock.calls.length;
  vi.advanceTimersByTime(2_000);
  const after = looks.mock.calls.length;

  await watch.stop();
  vi.useRealTimers();
  store.close();
  expect(after).toBe(before + 1);
});

test('a task that an earlier server was asked to run is observed again when it is at rest', async () => {
  const root = temporaryFolder();
  const tracker = embeddedAt(root, {}, ledgerAt(root));
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const task = { title: 'one', description: '', dependencies: [], priority: 2, labels: [] };
  const { id } = await tracker.create(task);
  const shown = { machine: 'task', task: { task_id: id, status: 'queued' } };
  store.commit({ entries: [entry(id, 0, 'snapshot', 1, shown)] });
  let isPending = true;
  let isAtRest = (_: TaskId): void => {};
  const observe = vi.fn(async () => !isPending);
  const looks = vi.spyOn(tracker, 'changes');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const watch = createTrackerWatch({
    ...{ tracker, store, observe },
    ...{ isPending: () => isPending, log: () => {} },
    onRest: (listener) => {
      isAtRest = listener;
    },
  });
  const look = async (number: number): Promise<void> => {
    vi.advanceTimersToNextTimer();
    await vi.waitFor(() => expect(looks).toHaveBeenCalledTimes(number));
    await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
  };

  watch.start();
  await vi.waitFor(() => {
    expect(observe).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(1);
  });
  const before = looks.mock.calls.length;
  const reads = vi.spyOn(tracker, 'findMany');
  await look(before + 1);
  const [observedAtWork, readAtWork] = [observe.mock.calls.length, reads.mock.calls.length];
  isPending = false;
  isAtRest(id);
  await look(before + 2);
  await look(before + 3);

  await watch.stop();
  vi.useRealTimers();
  store.close();
  expect([observedAtWork, readAtWork], 'it costs nothing while it is at work').toEqual([1, 0]);
  expect(observe.mock.calls).toEqual([
    [expect.objectContaining({ id }), null],
    [expect.objectContaining({ id }), null],
  ]);
});

test('a change to a task that runs meanwhile is not shown as of the task at rest', async () => {
  const root = temporaryFolder();
  const tracker = embeddedAt(root, {}, ledgerAt(root));
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const journal = createJournal(store, {
    ...{ node: 'n', onError: () => {}, onListenerError: () => {} },
  });
  const task = { title: 'one', description: '', dependencies: [], priority: 2, labels: [] };
  const created = await tracker.create(task);
  const { id } = created;
  const next = { ...{ id, taskId: id, version: 1 }, ...{ pending: true, changedAt: 1 } };
  let reads = Number.NEGATIVE_INFINITY;
  const observe = createObserver({
    node: 'n',
    observesRest: () => true,
    ...{ tracker, journal, now: Date.now, live: () => null },
    store: {
      actor: (of) => store.actor(of),
      latest: (...of) => store.latest(...of),
      removed: (of) => {
        reads += 1;
        // After the last read of the actor, and before the entries are written.
        if (reads === 3) store.commit({ actor: { ...next, snapshot: '{}' }, entries: [] });
        return store.removed(of);
      },
    },
    ...{ isPending: () => false, isStarting: () => false },
    ...{ dependenciesChanged: () => false, startActor: async () => {} },
  });
  expect(await observe(created, await store.actor(created.id))).toBe(true);
  const resting = createActor(taskMachine, { input: { taskId: id } }).getPersistedSnapshot();
  const snapshot = JSON.stringify(resting);
  store.commit({
    actor: { ...next, version: charts.newest, pending: false, snapshot },
    entries: [],
  });
  await tracker.edit(id, { title: 'two' });
  const edited = await tracker.find(id);
  if (edited === null) throw new Error('the task is gone');
  reads = 0;

  const isTaken = await observe(edited, await store.actor(edited.id));

  expect([isTaken, reads]).toEqual([false, 3]);
  const shown = store.read({ after: 0, limit: 10, taskId: id });
  expect(shown.filter(({ type }) => type === 'snapshot')).toHaveLength(1);
  store.close();
});

test('stop waits for the task that is taken in, and no other one is taken in after it', async () => {
  const root = temporaryFolder();
  const ledger = ledgerAt(root);
  const tracker = embeddedAt(root, {}, ledger);
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const events: string[] = [];
  let goOn = (): void => {};
  const observe = async ({ title }: { title: string }): Promise<boolean> => {
    events.push(`takes ${title}`);
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    events.push(`took ${title}`);
    return true;
  };
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const watch = createTrackerWatch({
    ...{ tracker, store, observe },
    ...{ isPending: () => false, onRest: () => {}, log: () => {} },
  });
  watch.start();
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
  for (const title of ['one', 'two'])
    await tracker.create({ title, description: '', dependencies: [], priority: 2, labels: [] });
  await ledger.exchange.flush();
  vi.advanceTimersToNextTimer();
  await vi.waitFor(() => expect(events).toHaveLength(1));
  vi.useRealTimers();

  const stopped = watch.stop().then(() => events.push('stopped'));
  goOn();
  await stopped;

  store.close();
  expect(events).toEqual([events[0], events[0]?.replace('takes', 'took'), 'stopped']);
});

const patience = { interval: 10 };

test('somebody else takes a task, gives it back and takes it again: each time the attempt stops and names them', {
  tags: ['slow'],
}, async () => {
  const { root, service, tracker, ledger } = await startSystem({ turns: [hang] });
  const amy = somebodyElse(root, 'amy', ledger);
  const id = (await service.create({ description: 'wanted' })).task_id as TaskId;
  const run = () => service.execute({ task: id, role: 'engineer', options: {} });
  const untilPhase = (phase: string) =>
    vi.waitFor(async () => expect((await service.status(id)).phase).toBe(phase), patience);
  const take = async (): Promise<void> => {
    await untilPhase('acting');
    await tracker.release(id, null);
    await amy.claim(id);
  };

  await run();
  await take();
  await untilPhase('started');
  await amy.release(id, null);
  await run();
  await take();

  await untilPhase('started');
  expect((await service.status(id)).error).toMatchObject({
    code: 'tracker_conflict',
    facts: { holder: 'amy' },
  });
});

test('a task whose line is away while it runs goes on, and its line comes back', async () => {
  const { root, service, ledger } = await startSystem({
    turns: [
      {
        calls: [
          { tool: 'bash', arguments: { command: 'while test ! -e go; do sleep 0.02; done' } },
        ],
      },
      finish(),
    ],
  });
  const id = (await service.create({ description: 'on another branch' })).task_id;
  await service.create({ description: 'on this one too' });
  const file = join(root, '.beads', 'issues.jsonl');
  const lines = () => readFileSync(file, 'utf8').trim().split('\n');
  const isOfTask = (line: string): boolean => line.includes(`"id":"${id}"`);
  await service.execute({ task: id, role: 'engineer', options: {} });
  await vi.waitFor(async () => expect((await service.status(id)).phase).toBe('acting'), patience);
  await ledger.exchange.flush();

  writeFileSync(
    file,
    `${lines()
      .filter((line) => !isOfTask(line))
      .join('\n')}\n`,
  );
  expect(await service.status(id)).toMatchObject({ status: 'started', phase: 'acting' });
  writeFileSync(join(root, 'go'), '');

  await vi.waitFor(
    async () => expect(await service.status(id)).toMatchObject({ status: 'complete' }),
    patience,
  );
  await ledger.exchange.flush();
  expect(JSON.parse(lines().find(isOfTask) ?? '')).toMatchObject({ id, status: 'closed' });
});

const observerAt = async (over: { readonly status: 'waiting' | 'resting' | 'reopening' }) => {
  const tracker = embeddedAt(temporaryFolder());
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const task = { title: 'one', description: '', dependencies: [], priority: 2, labels: [] };
  const created = await tracker.create(task);
  const input = { taskId: created.id };
  const first = createActor(taskMachine, { input });
  const { context } = first.getSnapshot();
  const actor =
    over.status === 'reopening'
      ? createActor(taskMachine, {
          input,
          snapshot: taskMachine.resolveState({ value: { queued: 'reopening' }, context }),
        })
      : first;
  const host = { actor, tracked: created };
  const waits = over.status !== 'resting';
  const observe = createObserver({
    node: 'n',
    observesRest: () => true,
    ...{ tracker, store, now: Date.now, live: () => (waits ? host : null) },
    journal: createJournal(store, {
      ...{ node: 'n', onError: () => {}, onListenerError: () => {} },
    }),
    ...{ isPending: () => waits, isStarting: () => false },
    ...{ dependenciesChanged: () => waits, startActor: async () => {} },
  });
  return { tracker, store, created, host, observe };
};

test('a claim whose answer was lost and which was given up does not leave the task started', async () => {
  const { tracker, store, created, host, observe } = await observerAt({ status: 'resting' });
  const { id } = created;
  await tracker.claim(id);
  const claimed = await tracker.find(id);
  if (claimed === null) throw new Error('the task is gone');
  // A claim in the millisecond of the creation is dated one later.
  const changedAt = Date.parse(claimed.updatedAt) + 1;
  store.commit({
    actor: {
      ...{ id, taskId: id, version: charts.newest, pending: false, changedAt },
      snapshot: JSON.stringify(host.actor.getPersistedSnapshot()),
    },
    entries: [],
  });
  expect(claimed.status).toBe('in_progress');

  await observe(claimed, await store.actor(claimed.id));

  expect(await tracker.find(id)).toMatchObject({ status: 'open', assignee: null });
  store.close();
});

test('changes by others to a task that waits are shown when it comes to rest', async () => {
  const { store, created, host, observe } = await observerAt({ status: 'waiting' });
  const given = { ...created, status: 'in_progress', assignee: 'amy' } as const;

  expect(await observe(given, await store.actor(given.id))).toBe(true);

  expect(host.tracked).toEqual(given);
  store.close();
});

test.each(['reopening', 'waiting'] as const)(
  'that a task is closed is told to one that is %s, unless that one opens it just now',
  async (status) => {
    const { tracker, store, created, host, observe } = await observerAt({ status });
    const told = vi.spyOn(host.actor, 'send').mockReturnValue(undefined);
    await tracker.close(created.id, 'by somebody');
    const closed = await tracker.find(created.id);

    if (closed !== null) await observe(closed, await store.actor(closed.id));

    expect(told).toHaveBeenCalledTimes(status === 'waiting' ? 1 : 0);
    store.close();
  },
);

test.each([
  ['n', false],
  ['another', true],
])(
  'a task that waits to be restored is observed again by its own server (%s)',
  async (node, isTaken) => {
    const { store, created, host, observe } = await observerAt({ status: 'resting' });
    const { id } = created;
    const snapshot = JSON.stringify(host.actor.getPersistedSnapshot());
    const actor = {
      id,
      taskId: id,
      version: charts.newest,
      pending: true,
      changedAt: 1,
      snapshot,
    };
    const commit = { entries: [], commit: { node, number: 1 } };
    store.commit(commit, { actor, guard: { revision: 0, attempt: 0 }, entries: [] });

    expect(await observe(created, await store.actor(created.id))).toBe(isTaken);
    store.close();
  },
);

test('a task that ended without a word to the tracker is opened there when it is at rest', async () => {
  const root = temporaryFolder();
  const tracker = embeddedAt(root, {}, ledgerAt(root));
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const task = { title: 'one', description: '', dependencies: [], priority: 2, labels: [] };
  const { id } = await tracker.create(task);
  const row = { id, taskId: id, version: 1, changedAt: 1, snapshot: '{}' };
  store.commit({ entries: [], actor: { ...row, pending: true } });
  await tracker.claim(id, () => {});
  let isAtRest = (_: TaskId): void => {};
  const watch = createTrackerWatch({
    ...{ tracker, store, observe: async () => true, isPending: () => false, log: () => {} },
    onRest: (listener) => {
      isAtRest = listener;
    },
  });

  watch.start();
  await vi.waitFor(async () =>
    expect(await tracker.find(id)).toMatchObject({ status: 'in_progress' }),
  );
  store.commit({ entries: [], actor: { ...row, pending: false } });
  isAtRest(id);

  await vi.waitFor(async () => expect(await tracker.find(id)).toMatchObject({ status: 'open' }));
  await watch.stop();
  store.close();
});
