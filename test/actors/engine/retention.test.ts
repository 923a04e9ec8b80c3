import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createRetention } from '../../../src/actors/engine/servers/retention.ts';
import { checkJournal } from '../../../src/actors/store/check-journal.ts';
import { openDatabase } from '../../../src/actors/store/database.ts';
import { createHistories } from '../../../src/actors/store/rows/histories.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import type { TrackedTask } from '../../../src/machines/tracked-task.ts';
import { atOnce } from '../../simulation/at-once.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const dayMs = 86_400_000;
const now = 1_000 * dayMs;
const long = now - 91 * dayMs;
const lately = now - 89 * dayMs;

interface Planned {
  readonly value: unknown;
  readonly pending?: boolean;
  readonly at?: number;
  /** Of its actor. */
  readonly changedAt?: number;
  readonly agentPending?: boolean;
  readonly status?: string | null;
  readonly entries?: number;
}

const entry = (taskId: string, at: number, text = 'x') => ({
  ...{ taskId, attempt: 1, type: 'log', at },
  ...{ data: JSON.stringify({ text }), cause: null },
});

const workOf = (unmerged: readonly string[]) => ({
  all: async () =>
    unmerged.map((taskId) => ({
      taskId,
      attempt: 1,
      branch: 'b',
      folder: null,
      ...{ isUnmerged: true, beside: [], superseded: null },
      stays: 'not merged',
    })),
  remove: async () => null,
  sizeOf: async () => 0,
  finish: async () => [],
});

const openWith = (
  tasks: Readonly<Record<string, Planned>>,
  unmerged: readonly string[] = [],
  days = 90,
) => {
  const db = openDatabase({ file: ':memory:' });
  const store = createSqliteStore({ file: db.file, redact: (text) => text }, db);
  const actor = (
    id: string,
    taskId: string,
    pending: boolean,
    at: number,
    value: unknown,
    attempt: number,
  ) => ({
    ...{ id, taskId, version: 1, pending, changedAt: at },
    snapshot: JSON.stringify({ value, context: { attempt } }),
  });
  for (const [
    id,
    { value, pending = false, at = long, agentPending = false, entries = 3, changedAt = at },
  ] of Object.entries(tasks)) {
    const lines = Array.from({ length: entries }, (_, n) => entry(id, at, `${n}`));
    atOnce(
      store.commit(
        {
          actor: actor(id, id, pending, changedAt, value, 2),
          entries: lines,
          request: { id: `r-${id}`, taskId: id },
        },
        { actor: actor(`${id}#1`, id, false, at, 'done', 1), entries: [] },
        { actor: actor(`${id}#2`, id, agentPending, at, 'done', 2), entries: [] },
        {
          step: { taskId: id, attempt: 2, key: 'think:1', intent: '{}', result: null },
          entries: [],
        },
      ),
    );
  }
  const tracked = (id: string): TrackedTask | null => {
    const status = tasks[id]?.status ?? 'closed';
    const labels = status === 'failed' ? ['agent-failed'] : [];
    return tasks[id]?.status === null
      ? null
      : ({ id, status: labels.length > 0 ? 'open' : status, labels } as never);
  };
  const reportsFolder = temporaryFolder();
  const retention = createRetention({
    histories: createHistories(db),
    tracker: { findMany: async (ids) => ids.flatMap((id) => tracked(id) ?? []) },
    work: workOf(unmerged),
    reportsFolder,
    days: () => days,
    now: () => now,
  });
  const left = () =>
    Object.keys(tasks).filter((taskId) => store.read({ taskId, after: 0, limit: 1 }).length > 0);
  return {
    db,
    store,
    retention,
    reportsFolder,
    left,
    run: () => retention.run(new AbortController().signal),
  };
};

test('the history of a task that ended long ago goes; the task, its last agent and the counters stay', async () => {
  const { db, store, run, left } = openWith({ 'bd-a': { value: 'complete', entries: 450 } });
  const counted = store.counters();
  const last = store.lastSeq();

  expect(await run()).toBe(1);

  expect(left()).toEqual([]);
  expect([store.steps('bd-a', 2), store.request('r-bd-a'), store.actor('bd-a#1')]).toEqual([
    [],
    null,
    null,
  ]);
  expect([store.actor('bd-a')?.revision, store.actor('bd-a#2')?.revision]).toEqual([1, 1]);
  expect(store.counters()).toEqual(counted);
  expect(store.removed('bd-a')).toEqual({ seq: 450, at: now, days: 90 });
  expect([store.lastSeq(), (await checkJournal(db)).faults]).toEqual([last, []]);
});

test('the reports of a task go with its history', async () => {
  const { run, reportsFolder } = openWith({
    'bd-a': { value: 'complete' },
    'bd-a2': { value: 'complete', at: lately },
  });
  for (const name of ['bd-a@1', 'bd-a@2', 'bd-a2@1'])
    mkdirSync(join(reportsFolder, name, 'junit.xml'), { recursive: true });

  await run();

  expect(readdirSync(reportsFolder)).toEqual(['bd-a2@1']);
});

const kept: readonly (readonly [why: string, planned: Planned])[] = [
  ['pending', { value: { queued: 'backingOff' }, pending: true }],
  ['pending, whatever its state is called', { value: 'complete', pending: true }],
  ['at rest, but its agent is pending', { value: 'failed', agentPending: true }],
  ['queued', { value: { queued: 'idle' } }],
  ['changed lately', { value: 'complete', at: lately }],
  ['changed lately in its state alone', { value: 'complete', changedAt: lately }],
  ['open in the tracker', { value: 'complete', status: 'open' }],
  ['started in the tracker', { value: 'complete', status: 'in_progress' }],
];

test.each(kept)('a task keeps its history while it is %s', async (_, planned) => {
  const { retention, run, left, store } = openWith({
    'bd-a': planned,
    'bd-b': { value: 'failed', status: 'failed' },
  });

  expect(await run()).toBe(1);

  expect(left()).toEqual(['bd-a']);
  expect([
    store.steps('bd-a', 2).length,
    store.request('r-bd-a'),
    store.actor('bd-a#1'),
  ]).not.toContain(null);
  expect(planned.status !== undefined || !(await retention.remove('bd-a' as never, []))).toBe(true);
});

test('a workflow keeps its history while it waits, however long, and loses it when it ended long ago', async () => {
  const { store, run } = openWith({});
  const change = (taskId: string, pending: boolean) => ({
    actor: {
      ...{ id: `workflow:${taskId}`, taskId, version: 1, pending, changedAt: long },
      snapshot: JSON.stringify({ value: pending ? { active: 'working' } : 'complete' }),
    },
    entries: [entry(taskId, long)],
  });
  atOnce(store.commit(change('wf-open', true), change('wf-over', false)));

  expect(await run()).toBe(1);

  const left = (taskId: string) => store.read({ taskId, after: 0, limit: 9 }).length;
  expect([left('wf-open'), left('wf-over')]).toEqual([1, 0]);
});

test('work that is not merged keeps its history, and 0 days keep all', async () => {
  const { run, left } = openWith({ 'bd-a': { value: 'complete' }, 'bd-b': { value: 'complete' } }, [
    'bd-a',
  ]);
  await run();

  const kept = openWith({ 'bd-a': { value: 'complete', at: 1 } }, [], 0);
  await kept.run();

  expect([left(), kept.left()]).toEqual([['bd-a'], ['bd-a']]);
});

test('a task that the tracker lost loses its history, and a tracker that is away takes none', async () => {
  const { run, left } = openWith({ 'bd-a': { value: 'complete', status: null } });
  await run();
  const away = openWith({ 'bd-a': { value: 'complete' } });
  const retention = createRetention({
    histories: createHistories(away.db),
    tracker: { findMany: () => Promise.reject(new Error('bd is away')) },
    work: workOf([]),
    reportsFolder: temporaryFolder(),
    days: () => 90,
    now: () => now,
  });

  await expect(retention.run(new AbortController().signal)).rejects.toThrow('bd is away');

  expect([left(), away.left()]).toEqual([[], ['bd-a']]);
});

test('a removal that was cut off is finished, and the chain of hashes goes on after it', async () => {
  const { db, store, run, left } = openWith({ 'bd-a': { value: 'complete', entries: 250 } });
  const histories = createHistories(db);
  await histories.mark('bd-a', now, { at: now, days: 90 });
  await histories.removeSome('bd-a');
  expect([left(), (await checkJournal(db)).faults]).toEqual([['bd-a'], []]);

  await store.commit({ entries: [entry('bd-a', now)] });
  await run();

  expect(store.read({ after: 0, limit: 10 })).toMatchObject([{ seq: 251, taskSeq: 251 }]);
  expect(await checkJournal(db)).toMatchObject({ entries: 1, faults: [] });
  await db.write(() => db.prepare("update journal set data = '{}'").run());
  expect((await checkJournal(db)).faults).toMatchObject([{ taskId: 'bd-a', seq: 251 }]);
});

test('snapshots can be read while their history goes, and the next one is whole', async () => {
  const { db, store, run } = openWith({ 'bd-a': { value: 'complete', entries: 1 } });
  const snapshot = (status: string) => ({
    ...entry('bd-a', long),
    type: 'snapshot',
    data: JSON.stringify({
      machine: 'task',
      value: status,
      tags: [],
      task: { description: 'x'.repeat(5_000), status },
    }),
  });
  await store.commit({ entries: Array.from({ length: 150 }, (_, n) => snapshot(`${n}`)) });
  const histories = createHistories(db);
  await histories.mark('bd-a', now, { at: now, days: 90 });
  await histories.removeSome('bd-a');

  expect(store.read({ after: 0, limit: 1_000 }).at(-1)?.data).toBe(snapshot('49').data);
  await store.commit({ entries: [{ ...snapshot('new'), at: now }] });
  await run();

  expect(store.latest('bd-a', 'snapshot')?.data).toBe(snapshot('new').data);
  expect([store.read({ after: 0, limit: 9 }).length, (await checkJournal(db)).faults]).toEqual([
    1,
    [],
  ]);
});

test('removes more histories than one page holds', async () => {
  const tasks = Object.fromEntries(
    Array.from({ length: 120 }, (_, n) => [`bd-${n}`, { value: 'complete', entries: 1 }]),
  );
  const { run, left } = openWith(tasks);

  expect(await run()).toBe(120);

  expect(left()).toEqual([]);
});
