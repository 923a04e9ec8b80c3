import { expect, test } from 'vitest';
import { openDatabase, type SqliteDatabase } from '../../../src/actors/store/database.ts';
import {
  type AuditFacts,
  createAudit,
  hashOfLine,
} from '../../../src/actors/store/rows/audit-rows.ts';

const facts = (action: string): AuditFacts => ({
  ...{ at: 1_000, name: 'ana', via: 'rpc', address: '127.0.0.1', action },
  ...{ taskId: 'bd-a1', about: null, outcome: 'allowed' },
});
const all = { since: 0, taskId: null, after: 0, limit: 100 };

/** A write of something else. */
const touch = (db: SqliteDatabase, key: string, then = (): void => {}): void => {
  const insert = db.prepare('insert into ledger (key, value) values (?, ?)');
  void db.write(function* () {
    yield* insert.run(key, '');
    then();
  });
};

test('a line is in the transaction of the next write, and waits again where that fails', async () => {
  const db = openDatabase({ file: ':memory:' });
  const audit = createAudit(db);

  const line = audit.add(facts('create'));
  const fail = (): never => {
    throw new Error('refused');
  };
  expect(() => touch(db, 'a', fail)).toThrow('refused');
  expect(await audit.page(all)).toEqual([]);
  expect(line.isWaiting()).toBe(true);
  touch(db, 'b');

  const [first] = await audit.page(all);
  expect(first).toMatchObject({ seq: 1, name: 'ana', action: 'create', outcome: 'allowed' });
  line.ended('already_running');
  await audit.flush();
  expect((await audit.page(all)).map(({ seq, outcome }) => [seq, outcome])).toEqual([
    [1, 'allowed'],
    [2, 'already_running'],
  ]);
});

test('a line that waits takes what came of it', async () => {
  const audit = createAudit(openDatabase({ file: ':memory:' }));

  audit.add(facts('merge')).ended('task_not_found');
  await audit.flush();

  expect(await audit.page(all)).toMatchObject([{ seq: 1, outcome: 'task_not_found' }]);
});

test('each line has the hash of the one before, also after another start, and by task', async () => {
  const db = openDatabase({ file: ':memory:' });
  createAudit(db).add(facts('create'));
  await createAudit(db).flush();
  const audit = createAudit(db);
  audit.add(facts('edit'));
  audit.add({ ...facts('edit'), taskId: 'bd-b2' });
  await audit.flush();

  const lines = await audit.page(all);
  expect(lines.map(({ previous }) => previous)).toEqual([
    '',
    ...lines.slice(0, -1).map(({ hash }) => hash),
  ]);
  expect(await audit.end()).toEqual({ seq: lines.at(-1)?.seq, hash: lines.at(-1)?.hash });
  expect((await audit.page({ ...all, taskId: 'bd-b2' })).length).toBe(1);
});

test('lines go on where somebody removed the record of the end', async () => {
  const db = openDatabase({ file: ':memory:' });
  const audit = createAudit(db);
  audit.add(facts('create'));
  await audit.flush();
  const forget = db.prepare("delete from ledger where key = 'audit_end'");
  void db.write(function* () {
    yield* forget.run();
  });
  audit.add(facts('edit'));
  await audit.flush();

  expect((await audit.page(all)).map(({ seq }) => seq)).toEqual([1, 2]);
});

test('no text keeps a line, or the writes that carry it, out of the database', async () => {
  const db = openDatabase({ file: ':memory:' });
  const audit = createAudit(db);
  const none = undefined as unknown as string;

  audit.add({ ...facts('a\u0000b'), about: '\ud800', outcome: 'x'.repeat(1_000_000) });
  audit.add({ ...facts('create'), address: none, name: 'a\nb', via: none });
  touch(db, 'a');

  const lines = await audit.page(all);
  expect(lines).toMatchObject([
    { action: 'a?b', about: '?', outcome: 'x'.repeat(300) },
    { address: 'undefined', name: 'a?b', via: 'undefined' },
  ]);
  for (const { hash, ...line } of lines) expect(hashOfLine(line)).toBe(hash);
});
