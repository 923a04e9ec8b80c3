import { expect, test } from 'vitest';
import { checkJournal } from '../../../src/actors/store/check-journal.ts';
import { openDatabase } from '../../../src/actors/store/database.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { atOnce } from '../../simulation/at-once.ts';

const entry = (taskId: string, text: string) => ({
  taskId,
  attempt: 1,
  type: 'log',
  at: 1,
  data: JSON.stringify({ text }),
  cause: null,
});

/** Entries 1, 3 and 5 are of bd-a; 2 and 4 of bd-b. */
const openJournal = () => {
  const db = openDatabase({ file: ':memory:' });
  const store = createSqliteStore({ file: db.file, redact: (text) => text }, db);
  const write = (...taskIds: string[]) =>
    atOnce(store.commit({ entries: taskIds.map((id, index) => entry(id, `entry ${index}`)) }));
  write('bd-a', 'bd-b', 'bd-a');
  write('bd-b', 'bd-a');
  return { db, write };
};

test('a journal that nobody changed is in order, and so is an empty one', async () => {
  expect(await checkJournal(openJournal().db)).toEqual({
    tasks: 2,
    entries: 5,
    withoutHash: 0,
    faults: [],
  });
  expect(await checkJournal(openDatabase({ file: ':memory:' }))).toEqual({
    tasks: 0,
    entries: 0,
    withoutHash: 0,
    faults: [],
  });
});

const swap = (column: string, one: number, other: number): string => `
  create temporary table kept as select * from journal where seq in (${one}, ${other});
  update journal set ${column} = (select ${column} from kept where kept.seq <> journal.seq) where seq in (${one}, ${other})`;

test.each([
  ['its text', "update journal set data = '{}' where seq = 3", [['bd-a', 3, 'was changed']]],
  ['its time', 'update journal set at = 2 where seq = 1', [['bd-a', 1, 'was changed']]],
  ['its cause', "update journal set cause = '{}' where seq = 4", [['bd-b', 4, 'was changed']]],
  ['its base', 'update journal set base = 1 where seq = 5', [['bd-a', 5, 'was changed']]],
  ['its attempt', 'update journal set attempt = 9 where seq = 5', [['bd-a', 5, 'was changed']]],
  [
    'the first is removed',
    'delete from journal where seq = 1',
    [['bd-a', 3, 'entry 1 of the task is missing']],
  ],
  [
    'one in the middle is removed',
    'delete from journal where seq = 3',
    [['bd-a', 5, 'entry 2 of the task is missing']],
  ],
  [
    'two are removed',
    'delete from journal where seq in (1, 3)',
    [['bd-a', 5, 'entries 1 to 2 of the task are missing']],
  ],
  [
    'its number in its task',
    'update journal set task_seq = 4 where seq = 3',
    [['bd-a', 3, 'has another number in its task']],
  ],
  ['the last is removed', 'delete from journal where seq = 5', [['bd-a', 3, 'is not the last']]],
  [
    'all of a task are removed',
    "delete from journal where task_id = 'bd-b'",
    [['bd-b', 0, 'is not the last']],
  ],
  [
    'two are swapped',
    swap('data', 1, 5),
    [
      ['bd-a', 1, 'was changed'],
      ['bd-a', 5, 'was changed'],
    ],
  ],
  [
    'it gets another number',
    'update journal set seq = 6 where seq = 3',
    [
      ['bd-a', 5, 'does not follow'],
      ['bd-a', 6, 'was changed'],
      ['bd-a', 6, 'is not the last'],
    ],
  ],
  [
    'it is given to another task',
    "update journal set task_id = 'bd-a' where seq = 4",
    [
      ['bd-a', 4, 'was changed'],
      ['bd-a', 5, 'does not follow'],
      ['bd-b', 2, 'is not the last'],
    ],
  ],
  [
    'one is added',
    "insert into journal (task_id, attempt, type, at, data) values ('bd-a', 1, 'log', 1, '{}')",
    [['bd-a', 6, 'was added']],
  ],
  [
    'one is copied with its hash',
    'insert into journal (task_id, attempt, type, at, data, previous, hash) select task_id, attempt, type, at, data, previous, hash from journal where seq = 5',
    [['bd-a', 6, 'was changed']],
  ],
])('a changed entry is found: %s', async (_, sql, faults) => {
  const { db } = openJournal();

  for (const each of sql.split(';')) atOnce(db.write(() => db.prepare(each).run()));

  const found = (await checkJournal(db)).faults.map(({ taskId, seq, problem }) => [
    taskId,
    seq,
    problem,
  ]);
  expect(found).toEqual(
    faults.map(([taskId, seq, problem]) => [taskId, seq, expect.stringContaining(String(problem))]),
  );
});

test('entries of version 2.1 have no hash; what is written after them has one', async () => {
  const { db, write } = openJournal();
  atOnce(db.write(() => db.prepare('update journal set previous = null, hash = null').run()));
  atOnce(db.write(() => db.prepare("update histories set last_hash = ''").run()));

  write('bd-a', 'bd-b');

  expect(await checkJournal(db)).toEqual({ tasks: 2, entries: 7, withoutHash: 5, faults: [] });
  atOnce(db.write(() => db.prepare('delete from journal where seq in (2, 6)').run()));
  expect((await checkJournal(db)).faults).toMatchObject([
    { taskId: 'bd-a', seq: 5 },
    { taskId: 'bd-b', seq: 4, problem: expect.stringContaining('entry 1 of the task is missing') },
  ]);
});

test('the last entry of a journal of version 2.1 is missed by its number', async () => {
  const { db } = openJournal();
  atOnce(db.write(() => db.prepare('update journal set previous = null, hash = null').run()));
  atOnce(db.write(() => db.prepare("update histories set last_hash = ''").run()));

  atOnce(db.write(() => db.prepare('delete from journal where seq = 5').run()));

  expect((await checkJournal(db)).faults).toMatchObject([{ taskId: 'bd-a', seq: 3 }]);
});
