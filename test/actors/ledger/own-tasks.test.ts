import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openLedger } from '../../../src/actors/ledger/ledger.ts';
import { openDatabase } from '../../../src/actors/store/database.ts';
import type { Change } from '../../../src/actors/store/port.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { embeddedAt } from '../../support/ledger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const open = async () => {
  const root = temporaryFolder();
  const db = openDatabase({ file: ':memory:' });
  const { store, ledger } = openLedger({
    db,
    projectRoot: root,
    clock: Date.now,
    log: () => {},
    redact: (text) => text,
  });
  const tracker = embeddedAt(root, {}, ledger);
  const { id } = await tracker.create({
    title: 'x',
    description: '',
    priority: 2,
    labels: [],
    dependencies: [],
  });
  const statusOf = async (): Promise<string | undefined> => (await tracker.find(id))?.status;
  /** The transition that claims the task, and the first one of its agent. */
  const claim = async (): Promise<readonly [Change, Change]> => {
    const { toCommit } = await tracker.prepare(
      { kind: 'claim', id },
      { fence: () => {}, committed: async () => {} },
    );
    if (toCommit === undefined) throw new Error('the claim changes nothing');
    const saved = { taskId: id, version: 1, pending: true, changedAt: 0, snapshot: '{}' };
    const entry = { taskId: id, attempt: 1, type: 'log', at: 0, data: '{}', cause: null };
    return [
      {
        actor: { ...saved, id },
        guard: { revision: 0, attempt: 1 },
        entries: [entry],
        tasks: [toCommit.edit],
        request: { id: 'r1', taskId: id },
      },
      { actor: { ...saved, id: `${id}#1` }, guard: { revision: 0, attempt: 1 }, entries: [entry] },
    ];
  };
  return { root, store, tracker, id, statusOf, claim };
};

test('a claim is written with its transition, and not before', async () => {
  const { store, id, statusOf, claim } = await open();
  const changes = await claim();
  const before = await statusOf();

  const { stale } = await store.commit(...changes);

  expect(before).toBe('open');
  expect(stale).toEqual([]);
  expect(await statusOf()).toBe('in_progress');
  expect(store.actor(id)).not.toBeNull();
});

const meanwhile = {
  'somebody changed the task': ({ tracker, id }: Awaited<ReturnType<typeof open>>) =>
    tracker.close(id, 'done by hand').then(() => {}),
  'somebody wrote a comment on it': ({ tracker, id }) => tracker.note(id as TaskId, 'a word'),
  'bd took the tasks over': async ({ root }) => {
    mkdirSync(join(root, '.beads'), { recursive: true });
    writeFileSync(join(root, '.beads', 'metadata.json'), '{}');
  },
} satisfies Record<string, (opened: Awaited<ReturnType<typeof open>>) => Promise<void>>;

test.each(Object.entries(meanwhile))(
  'when %s, nothing of the transition is saved',
  async (_, change) => {
    const opened = await open();
    const { store, id, claim } = opened;
    const changes = await claim();
    await change(opened);

    const { entries, stale } = await store.commit(...changes);

    expect(stale).toEqual(changes);
    expect(entries).toEqual([]);
    expect(store.actor(id)).toBeNull();
    expect(store.actor(`${id}#1`)).toBeNull();
    expect(store.request('r1')).toBeNull();
  },
);

test('what was prepared for a task is stale when the same transaction blocks that task', async () => {
  const { store, tracker, id: blocker } = await open();
  const task = { title: 'y', description: '', priority: 2, labels: [] };
  const { id } = await tracker.create({ ...task, dependencies: [blocker] });
  await tracker.close(blocker, 'done');
  const prepared = async (kind: 'claim' | 'reopen', of: TaskId): Promise<Change> => {
    const { toCommit } = await tracker.prepare(
      { kind, id: of },
      { fence: () => {}, committed: async () => {} },
    );
    return { entries: [], tasks: toCommit === undefined ? [] : [toCommit.edit] };
  };
  const [reopen, claim] = [await prepared('reopen', blocker), await prepared('claim', id)];

  const { stale } = await store.commit(reopen, claim);

  expect(stale).toEqual([claim]);
  expect(await tracker.find(id)).toMatchObject({ status: 'open', unmet: [blocker] });
});

test('two claims that were made from the same task: the second is stale', async () => {
  const { store, claim } = await open();
  const [first] = await claim();
  const [second] = await claim();

  expect((await store.commit(first)).stale).toEqual([]);
  expect((await store.commit(second)).stale).toEqual([second]);
});

test('a server that starts sees the changes since the last look of an earlier one', async () => {
  const { tracker, id } = await open();
  const first = await tracker.changes(null, null);
  await tracker.changes(first.mark, first.mark);
  await tracker.note(id, 'a word, while no server runs');

  const later = await tracker.changes(null, null);
  await tracker.changes(later.mark, later.mark);

  expect(first.tasks.map((task) => task.id)).toEqual([id]);
  expect(later.tasks.map((task) => task.id)).toEqual([id]);
  expect((await tracker.changes(null, null)).tasks).toEqual([]);
});

test('a change that was not observed before a crash is seen by the next server', async () => {
  const { tracker, id } = await open();
  const first = await tracker.changes(null, null);

  await tracker.changes(first.mark, null);

  expect((await tracker.changes(null, null)).tasks.map((task) => task.id)).toEqual([id]);
});
