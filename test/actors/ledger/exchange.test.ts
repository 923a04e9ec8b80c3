import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Issue } from '../../../src/actors/ledger/issue.ts';
import { openLedger } from '../../../src/actors/ledger/ledger.ts';
import { mergeIssue } from '../../../src/actors/ledger/take-difference.ts';
import { openDatabase } from '../../../src/actors/store/database.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import type { Tracker } from '../../../src/actors/tracker/port.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { aTask } from '../../contracts/tracker.ts';
import { gitIn } from '../../support/git.ts';
import { embeddedAt, ledgerAt } from '../../support/ledger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** What others do to `.beads/issues.jsonl`: git, editors, other clones. */

const person = ['-c', 'user.name=Amy', '-c', 'user.email=amy@localhost'];

/** A clone of a project with a database of its own. */
const cloneAt = (root: string, stateDir = temporaryFolder()) => {
  const db = openDatabase({ file: join(stateDir, 'journal.db') });
  const ledger = ledgerAt(root, db);
  const file = join(root, '.beads', 'issues.jsonl');
  const commit = (message: string): void => {
    gitIn(root, 'add', '-A');
    gitIn(root, ...person, 'commit', '--quiet', '--allow-empty', '-m', message);
  };
  return {
    root,
    db,
    file,
    commit,
    stateDir,
    tracker: embeddedAt(root, {}, ledger),
    save: ledger.exchange.flush,
    lines: () => readFileSync(file, 'utf8').trimEnd().split('\n'),
  };
};

/** Amy's and Bob's clones, with these tasks in both. */
const twoClones = async (...titles: readonly string[]) => {
  const [origin, amysRoot, bobsRoot] = [temporaryFolder(), temporaryFolder(), temporaryFolder()];
  gitIn(origin, 'init', '--quiet', '--bare', '--initial-branch=main');
  gitIn(amysRoot, 'clone', '--quiet', origin, '.');
  const amy = cloneAt(amysRoot);
  const ids: TaskId[] = [];
  for (const title of titles) ids.push((await amy.tracker.create(aTask({ title }))).id);
  await amy.save();
  amy.commit('tasks');
  gitIn(amysRoot, 'push', '--quiet', 'origin', 'HEAD:main');
  gitIn(bobsRoot, 'clone', '--quiet', origin, '.');
  return { amy, bob: cloneAt(bobsRoot), ids };
};
const push = ({ root }: { readonly root: string }): void => {
  gitIn(root, 'push', '--quiet', 'origin', 'HEAD:main');
};
const statesOf = async (tracker: Tracker) =>
  Object.fromEntries((await tracker.list()).map(({ title, status }) => [title, status]));

test('git pull brings the tasks of another clone, and nothing of ours is lost', async () => {
  const { amy, bob, ids } = await twoClones('one', 'two', 'three');
  const [one] = ids as [TaskId];
  await bob.tracker.list();
  await amy.tracker.close(one, 'done');
  await amy.tracker.create(aTask({ title: 'of amy' }));
  await amy.save();
  amy.commit('amy');
  push(amy);

  gitIn(bob.root, 'pull', '--quiet', 'origin', 'main');

  expect(await statesOf(bob.tracker)).toEqual({
    one: 'closed',
    two: 'open',
    three: 'open',
    'of amy': 'open',
  });
  await bob.save();
  expect(gitIn(bob.root, 'status', '--porcelain')).toBe('');
});

test('two clones that git merges have the tasks and the changes of both', {
  tags: ['slow'],
}, async () => {
  const { amy, bob, ids } = await twoClones('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
  await bob.tracker.list();
  const sorted = [...ids].sort();
  const [first, last] = [sorted[0], sorted.at(-1)] as [TaskId, TaskId];
  await amy.tracker.close(first, 'by amy');
  await amy.save();
  amy.commit('amy');
  push(amy);
  await bob.tracker.close(last, 'by bob');
  await bob.save();
  bob.commit('bob');

  gitIn(bob.root, ...person, 'pull', '--quiet', '--no-rebase', '--no-edit', 'origin', 'main');
  push(bob);
  gitIn(amy.root, 'pull', '--quiet', 'origin', 'main');

  for (const { tracker } of [amy, bob]) {
    expect(await tracker.find(first)).toMatchObject({ status: 'closed' });
    expect(await tracker.find(last)).toMatchObject({ status: 'closed' });
  }
  await Promise.all([amy.save(), bob.save()]);
  expect(amy.lines()).toEqual(bob.lines());
});

test('a conflict of git waits, is named, and is taken when it is solved', {
  tags: ['slow'],
}, async () => {
  const { amy, bob, ids } = await twoClones('one');
  const [one] = ids as [TaskId];
  await bob.tracker.list();
  await amy.tracker.close(one, 'by amy');
  await amy.save();
  amy.commit('amy');
  push(amy);
  await bob.tracker.claim(one);
  await bob.save();
  bob.commit('bob');

  expect(() =>
    gitIn(bob.root, ...person, 'pull', '--no-rebase', '--no-edit', 'origin', 'main'),
  ).toThrow();
  const during = await bob.tracker.find(one);
  const problem = await bob.tracker.unreadable();
  const { id: meanwhile } = await bob.tracker.create(aTask({ title: 'meanwhile' }));
  await bob.save();
  const untouched = readFileSync(bob.file, 'utf8');
  gitIn(bob.root, 'checkout', '--theirs', '.beads/issues.jsonl');
  const after = await bob.tracker.find(one);

  expect(during).toMatchObject({ status: 'in_progress' });
  expect(problem).toMatch(
    /line 1 cannot be read: a conflict marker of git; line \d: a conflict marker of git/,
  );
  expect(untouched).toContain('<<<<<<<');
  expect(after).toMatchObject({ status: 'closed' });
  expect(await bob.tracker.find(meanwhile)).not.toBeNull();
});

test('a task that was made while the file could not be read is written when it can', async () => {
  const { amy } = await twoClones('one');
  const before = readFileSync(amy.file, 'utf8');
  writeFileSync(amy.file, `<<<<<<< HEAD\n${before}`);
  await amy.tracker.create(aTask({ title: 'meanwhile' }));
  await amy.save();
  expect(readFileSync(amy.file, 'utf8')).toContain('<<<<<<<');

  writeFileSync(amy.file, before);
  await amy.tracker.list();

  await expect.poll(amy.lines, { timeout: 10_000 }).toHaveLength(2);
});

test('git checkout of an older commit brings its tasks back, and of a newer one the newer', async () => {
  const { amy, ids } = await twoClones('one', 'two');
  const [one] = ids as [TaskId];
  await amy.tracker.close(one, 'done');
  await amy.save();
  amy.commit('closed');

  gitIn(amy.root, 'checkout', '--quiet', 'HEAD~1');
  const older = await statesOf(amy.tracker);
  gitIn(amy.root, 'checkout', '--quiet', 'main');
  const newer = await statesOf(amy.tracker);

  expect([older, newer]).toEqual([
    { one: 'open', two: 'open' },
    { one: 'closed', two: 'open' },
  ]);
});

test('a line that an editor removes removes the task, unless it changed here or an attempt works on it', async () => {
  const { amy, ids } = await twoClones('gone', 'changed', 'at work', 'stays');
  const [gone, changed, atWork, stays] = ids as [TaskId, TaskId, TaskId, TaskId];
  await amy.tracker.claim(atWork);
  await amy.save();
  const store = createSqliteStore({ file: amy.db.file, redact: (text) => text }, amy.db);
  const actor = {
    id: atWork,
    taskId: atWork,
    version: 1,
    pending: true,
    changedAt: 1,
    snapshot: '{}',
  };
  await store.commit({ entries: [], actor });

  await amy.tracker.close(changed, 'done');
  const left = amy.lines().filter((line) => line.includes(stays));
  writeFileSync(amy.file, `${left.join('\n')}\n`);

  expect(await statesOf(amy.tracker)).toEqual({
    changed: 'closed',
    'at work': 'in_progress',
    stays: 'open',
  });
  expect(store.read({ taskId: gone, after: 0, limit: 9 })).toMatchObject([
    { type: 'tracker_imported', data: '{"change":"removed","fields":[]}' },
  ]);
  await amy.save();
  expect(amy.lines()).toHaveLength(3);
});

test('a change of the file never takes a task away that an attempt works on', async () => {
  const { amy, ids } = await twoClones('at work');
  const [atWork] = ids as [TaskId];
  await amy.tracker.claim(atWork);
  await amy.save();
  const store = createSqliteStore({ file: amy.db.file, redact: (text) => text }, amy.db);
  await store.commit({
    entries: [],
    actor: { id: atWork, taskId: atWork, version: 1, pending: true, changedAt: 1, snapshot: '{}' },
  });

  const issue = JSON.parse(amy.lines()[0] ?? '');
  writeFileSync(
    amy.file,
    `${JSON.stringify({ ...issue, title: 'renamed', status: 'closed', assignee: 'bob' })}\n`,
  );

  expect(await amy.tracker.find(atWork)).toMatchObject({
    title: 'renamed',
    status: 'in_progress',
    assignee: 'agent-server',
  });
});

test.each([
  ['deletes', (file: string) => rmSync(file)],
  ['empties', (file: string) => writeFileSync(file, '')],
])('a file that somebody %s is written again with the next change of a task', async (_, spoil) => {
  const { amy, ids } = await twoClones('one', 'two');

  spoil(amy.file);

  expect(await amy.tracker.list()).toHaveLength(2);
  await amy.tracker.close(ids[0] as TaskId, 'done');
  await amy.save();
  expect(amy.lines()).toHaveLength(2);
});

test('a commit without the file can be left again when no task changed there', async () => {
  const { amy } = await twoClones('one');
  gitIn(amy.root, 'rm', '--quiet', '.beads/issues.jsonl');
  amy.commit('without tasks');

  expect(await amy.tracker.list()).toHaveLength(1);
  await amy.save();

  expect(existsSync(amy.file)).toBe(false);
  await amy.save('write');
  expect(amy.lines()).toHaveLength(1);
  rmSync(amy.file);
  gitIn(amy.root, 'checkout', '--quiet', 'HEAD~1');
  expect(await amy.tracker.list()).toHaveLength(1);
});

test('a project of version 2.1.0 is taken over once, with a copy of its file', async () => {
  const [root, stateDir] = [temporaryFolder(), temporaryFolder()];
  mkdirSync(join(root, '.beads'));
  const line = (id: string) =>
    `{"id":"${id}","title":"${id}","status":"open","priority":2,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}`;
  const text = `{"_schema":"beads/1"}\n${line('bd-b')}\n${line('bd-a')}\n`;
  writeFileSync(join(root, '.beads', 'issues.jsonl'), text);
  for (const name of ['.agent.lock', 'issues.jsonl.bak'])
    writeFileSync(join(root, '.beads', name), '');

  const clone = cloneAt(root, stateDir);
  expect(Object.keys(await statesOf(clone.tracker))).toEqual(['bd-a', 'bd-b']);
  await clone.save();

  expect(readFileSync(join(stateDir, 'journal.db.first-import.jsonl'), 'utf8')).toBe(text);
  expect(readFileSync(clone.file, 'utf8')).toBe(text);
  expect(readdirSync(join(root, '.beads'))).toEqual(['.exchange', 'issues.jsonl']);
});

test('a file that cannot be imported keeps nobody from the tasks that are there', async () => {
  const clone = cloneAt(temporaryFolder());
  const { id } = await clone.tracker.create(aTask({ title: 'ours' }));
  mkdirSync(join(clone.stateDir, 'journal.db.first-import.jsonl'));
  mkdirSync(join(clone.root, '.beads'));
  writeFileSync(
    clone.file,
    '{"id":"bd-theirs","title":"theirs","created_at":"2026-01-01","updated_at":"2026-01-01"}\n',
  );

  expect(await statesOf(clone.tracker)).toEqual({ ours: 'open' });
  expect(await clone.tracker.unreadable()).toContain('.beads/issues.jsonl cannot be imported: E');
  rmSync(join(clone.stateDir, 'journal.db.first-import.jsonl'), { recursive: true });
  expect(await statesOf(clone.tracker)).toEqual({ ours: 'open', theirs: 'open' });
  await clone.save();
  expect(clone.lines().map((line) => JSON.parse(line).id)).toEqual(['bd-theirs', id].sort());
  expect(await clone.tracker.unreadable()).toBeNull();
});

test('a state folder that is lost is made again from the file', async () => {
  const { amy, ids } = await twoClones('one', 'two');
  await amy.tracker.close(ids[0] as TaskId, 'done');
  await amy.save();

  const again = cloneAt(amy.root);

  expect(await statesOf(again.tracker)).toEqual({ one: 'closed', two: 'open' });
  appendFileSync(again.file, '');
  await again.save();
  expect(again.lines()).toEqual(amy.lines());
});

test('an import of an export changes nothing', async () => {
  const { amy, bob } = await twoClones('one', 'two', 'three');
  await bob.tracker.list();
  copyFileSync(amy.file, bob.file);
  const revisionOf = async (): Promise<unknown> =>
    bob.db.ask(bob.db.prepare("select value from ledger where key = 'revision'").first());
  const before = await revisionOf();

  await bob.tracker.list();
  await bob.save();

  expect(await revisionOf()).toEqual(before);
  expect(bob.lines()).toEqual(amy.lines());
  expect(existsSync(`${bob.file}.bak`)).toBe(false);
});

const anIssue = fc.record({
  id: fc.constant('bd-a'),
  title: fc.constantFrom('a', 'b', 'c'),
  status: fc.constantFrom('open', 'in_progress', 'closed'),
  priority: fc.integer({ min: 0, max: 4 }),
  labels: fc.uniqueArray(fc.constantFrom<string>('x', 'y', 'z')),
  created_at: fc.constant('2026-01-01T00:00:00Z'),
  updated_at: fc.constantFrom(
    '2026-01-02T00:00:00Z',
    '2026-01-03T00:00:00Z',
    '2026-01-04T00:00:00Z',
  ),
});

test('whatever two sides change, both come to the same task, and no change of one side alone is lost', () => {
  fc.assert(
    fc.property(anIssue, anIssue, anIssue, (base, ours, theirs) => {
      fc.pre(ours.updated_at !== theirs.updated_at);
      const [here, there] = [
        mergeIssue({ base, ours, theirs, isLive: false }),
        mergeIssue({ base, ours: theirs, theirs: ours, isLive: false }),
      ];
      const plain = (issue: Issue) => ({ ...issue, labels: [...(issue.labels ?? [])].sort() });
      expect(plain(here)).toEqual(plain(there));
      for (const key of ['title', 'priority', 'status'] as const) {
        if (ours[key] === base[key]) expect(here[key]).toBe(theirs[key]);
        if (theirs[key] === base[key]) expect(here[key]).toBe(ours[key]);
      }
      for (const label of ['x', 'y', 'z']) {
        const isAdded =
          !base.labels.includes(label) && [...ours.labels, ...theirs.labels].includes(label);
        if (isAdded) expect(here.labels).toContain(label);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('nothing is tried again after the database was closed', async () => {
  const root = temporaryFolder();
  const db = openDatabase({ file: ':memory:' });
  const told: string[] = [];
  const { ledger } = openLedger({
    ...{ db, projectRoot: root, clock: Date.now, redact: (text) => text },
    log: (message) => void told.push(message),
  });
  await embeddedAt(root, {}, ledger).create(aTask({ title: 'one' }));

  db.close();
  await delay(500);

  expect(told).toEqual([]);
});
