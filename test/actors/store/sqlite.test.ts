import { statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { expect, test } from 'vitest';
import { checkJournal } from '../../../src/actors/store/check-journal.ts';
import { openDatabase } from '../../../src/actors/store/database.ts';
import { takeLock } from '../../../src/actors/store/process-lock.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { describeStore, sqliteScene } from '../../contracts/store.ts';
import { atOnce } from '../../simulation/at-once.ts';
import { temporaryFolder } from '../../support/temporary.ts';

describeStore('sqlite', () => sqliteScene((near) => near));

const note = (data: string) => ({
  taskId: 'bd-a',
  attempt: 1,
  type: 'log',
  at: 1,
  data,
  cause: null,
});

test('secrets are taken out of everything that is written', async () => {
  const redact = (text: string) => text.replaceAll('sk-secret', '[secret]');
  const store = createSqliteStore({ file: ':memory:', redact });

  const {
    entries: [entry],
  } = await store.commit({
    entries: [{ ...note('{"text":"key sk-secret"}'), cause: '"sk-secret"' }],
    actor: {
      id: 'bd-a',
      taskId: 'bd-a',
      version: 1,
      pending: true,
      changedAt: 1,
      snapshot: '"sk-secret"',
    },
  });

  expect(entry?.data).toBe('{"text":"key [secret]"}');
  expect(JSON.stringify([store.read({ after: 0, limit: 9 }), store.actor('bd-a')])).not.toContain(
    'sk-secret',
  );
});

test('the journal is readable by its owner only', () => {
  const file = join(temporaryFolder(), 'journal.db');
  createSqliteStore({ file, redact: (text) => text }).close();

  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('a reader beside the writer sees what was committed and cannot write', () => {
  const file = join(temporaryFolder(), 'journal.db');
  const writer = createSqliteStore({ file, redact: (text) => text });
  atOnce(writer.commit({ entries: [note('{}')] }));

  const reader = createSqliteStore({ file, readonly: true, redact: (text) => text });

  expect(reader.lastSeq()).toBe(1);
  expect(() => reader.commit({ entries: [note('{}')] })).toThrow();
  reader.close();
  writer.close();
});

test('a project is locked by one holder at a time, and free again after it', () => {
  const path = join(temporaryFolder(), 'server.lock');
  const first = takeLock(path);

  expect(takeLock(path)).toBeNull();
  first?.release();
  const second = takeLock(path);

  expect(second).not.toBeNull();
  second?.release();
});

test('a journal of version 2.1 gets its guards when it is opened, with the live attempt of each task', () => {
  const file = join(temporaryFolder(), 'journal.db');
  const old = new Database(file);
  old.exec(`create table actors (id text primary key, task_id text not null, version integer not null,
    pending integer not null, changed_at integer not null, snapshot text not null) without rowid`);
  const add = old.prepare('insert into actors values (?, ?, 1, 1, 5, ?)');
  add.run('bd-a', 'bd-a', '{"value":{"started":"working"},"context":{"attempt":2}}');
  add.run('bd-a#2', 'bd-a', '{"value":"thinking","context":{"attempt":2}}');
  add.run('bd-b', 'bd-b', '{"value":{"queued":"backingOff"},"context":{"attempt":1}}');
  old.close();

  const store = createSqliteStore({ file, redact: (text) => text });

  expect(['bd-a', 'bd-a#2', 'bd-b'].map((id) => store.actor(id)?.revision)).toEqual([1, 1, 1]);
  const agent = (id: string, taskId: string, attempt: number, revision: number) => ({
    actor: { id, taskId, version: 1, pending: true, changedAt: 6, snapshot: '{}' },
    guard: { revision, attempt },
    entries: [],
  });
  const [live, over] = [agent('bd-a#2', 'bd-a', 2, 1), agent('bd-b#1', 'bd-b', 1, 0)];
  expect(atOnce(store.commit(live, over)).stale).toEqual([over]);
  store.close();
});

test('a snapshot takes the bytes of what changed; a new text of the task is kept once', () => {
  const db = openDatabase({ file: ':memory:' });
  const store = createSqliteStore({ file: db.file, redact: (text) => text }, db);
  const [first, second] = ['one '.repeat(5_000), 'two '.repeat(5_000)];
  const snapshot = (turns: number, description: string) => ({
    ...note(
      JSON.stringify({
        machine: 'agent',
        value: 'thinking',
        tags: [],
        task: { description, turns },
      }),
    ),
    type: 'snapshot',
  });
  for (let turn = 0; turn < 100; turn += 1)
    atOnce(store.commit({ entries: [snapshot(turn, turn < 50 ? first : second)] }));

  const sizes = db.ask(db.prepare('select length(data) as size from journal order by seq').all());

  const large = sizes.flatMap(({ size }, index) => (Number(size) > 100 ? [index] : []));
  expect(large).toEqual([0, 50]);
  expect(JSON.parse(store.read({ after: 99, limit: 1 })[0]?.data ?? '').task.description).toBe(
    second,
  );
});

test('a snapshot whose base is gone is refused by name', () => {
  const db = openDatabase({ file: ':memory:' });
  const store = createSqliteStore({ file: db.file, redact: (text) => text }, db);
  const snapshot = {
    ...note(
      JSON.stringify({
        machine: 'agent',
        value: 'x',
        tags: [],
        task: { description: 'x'.repeat(2_000) },
      }),
    ),
    type: 'snapshot',
  };
  atOnce(store.commit({ entries: [snapshot, snapshot] }));

  atOnce(db.write(() => db.prepare('delete from journal where seq = 1').run()));

  expect(() => store.read({ after: 0, limit: 9 })).toThrow(
    'entry 2 of the journal needs entry 1, which is gone',
  );
});

test('a journal of version 2.1 goes on with hashes', async () => {
  const file = join(temporaryFolder(), 'journal.db');
  const old = new Database(file);
  old.exec(`create table journal (seq integer primary key autoincrement, task_id text not null,
    attempt integer not null, type text not null, at integer not null, data text not null, cause text);
    insert into journal (task_id, attempt, type, at, data) values ('bd-a', 1, 'log', 1, '{}')`);
  old.close();
  const before = openDatabase({ file, readonly: true });
  expect(await checkJournal(before)).toEqual({ tasks: 1, entries: 1, withoutHash: 1, faults: [] });
  before.close();

  const db = openDatabase({ file });
  const store = createSqliteStore({ file, redact: (text) => text }, db);
  atOnce(store.commit({ entries: [note('{"text":"new"}')] }));

  expect(store.read({ after: 0, limit: 9 }).map(({ data }) => data)).toEqual([
    '{}',
    '{"text":"new"}',
  ]);
  expect(await checkJournal(db)).toEqual({ tasks: 1, entries: 2, withoutHash: 1, faults: [] });
  store.close();
});

test('a journal without numbers in its tasks gets them when it is opened, also behind what was removed', async () => {
  const file = join(temporaryFolder(), 'journal.db');
  const first = createSqliteStore({ file, redact: (text) => text });
  const of = (taskId: string) => ({ ...note('{}'), taskId });
  atOnce(first.commit({ entries: [of('bd-a'), of('bd-b'), of('bd-a'), of('bd-a')] }));
  first.close();
  const old = new Database(file);
  for (const [table, column] of [
    ['journal', 'task_seq'],
    ['histories', 'last_task_seq'],
    ['histories', 'removed_task_seq'],
  ])
    old.exec(`alter table ${table} drop column ${column}`);
  // The first entry of bd-a is removed, the second is to be.
  old.exec(`delete from journal where seq = 1;
    update histories set removed_seq = 3, removed_hash = (select hash from journal where seq = 3),
      removing = 1 where task_id = 'bd-a'`);
  old.close();
  const before = openDatabase({ file, readonly: true });
  expect((await checkJournal(before)).faults).toEqual([]);
  before.close();

  const db = openDatabase({ file });
  const store = createSqliteStore({ file, redact: (text) => text }, db);
  atOnce(store.commit({ entries: [of('bd-a'), of('bd-b')] }));

  const numbers = (taskId: string) =>
    store.read({ taskId, after: 0, limit: 9 }).map(({ taskSeq }) => taskSeq);
  expect([numbers('bd-a'), numbers('bd-b'), (await checkJournal(db)).faults]).toEqual([
    [1, 2, 3],
    [1, 2],
    [],
  ]);
  store.close();
});

test('a subscriber that begins while others are told of a commit gets only what comes after', () => {
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const heard: number[] = [];
  const listenTo = (entries: readonly { readonly seq: number }[]): void =>
    void heard.push(...entries.map(({ seq }) => seq));
  const failed = (error: unknown): never => {
    throw error;
  };
  store.subscribe({
    entries: ([first]) => {
      if (first?.seq !== 1) return;
      atOnce(store.commit({ entries: [note('{}')] }));
      store.subscribe({ entries: listenTo, failed });
    },
    failed,
  });

  atOnce(store.commit({ entries: [note('{}')] }));
  atOnce(store.commit({ entries: [note('{}')] }));

  expect(heard).toEqual([3]);
  store.close();
});

test('a journal of version 2.1 is counted once; then nobody reads it to count', () => {
  const file = join(temporaryFolder(), 'journal.db');
  const db = openDatabase({ file });
  const store = createSqliteStore({ file, redact: (text) => text }, db);
  const ended = { ...note('{"execution_seconds":2}'), type: 'completed' };
  const began = { ...note('{"machine":"agent","value":"preparing","tags":[]}'), type: 'snapshot' };
  const later = { ...note('{"machine":"agent","value":"thinking","tags":[]}'), type: 'snapshot' };
  atOnce(store.commit({ entries: [began, later, ended] }));
  atOnce(db.write(() => db.prepare('delete from counters').run()));

  const broken = { ...note('{}'), data: null as unknown as string };
  expect(() => store.commit({ entries: [ended, broken] })).toThrow();
  atOnce(store.commit({ entries: [ended] }));
  atOnce(db.write(() => db.prepare('delete from journal').run()));
  atOnce(store.commit({ entries: [ended] }));

  expect(store.counters()).toMatchObject({
    spawned: 1,
    completed: 3,
    executed: 3,
    executionSeconds: 6,
  });
  store.close();
});

test('a journal of version 2.1 can be read by a reader', () => {
  const file = join(temporaryFolder(), 'journal.db');
  createSqliteStore({ file, redact: (text) => text }).close();
  const old = new Database(file);
  old.exec(
    'drop index actors_unhosted; alter table actors drop column revision; alter table actors drop column live_attempt; alter table actors drop column owner; alter table actors drop column waits_role; alter table actors drop column waits_priority; alter table actors drop column restores; alter table attempts drop column cache_write_tokens; alter table usage_days drop column cache_write_tokens',
  );
  old.prepare('insert into actors values (?, ?, 1, 1, 5, ?)').run('bd-a', 'bd-a', '{}');
  old.close();

  const reader = createSqliteStore({ file, readonly: true, redact: (text) => text });

  expect(reader.actor('bd-a')).toMatchObject({ id: 'bd-a', revision: 0 });
  reader.close();
});
