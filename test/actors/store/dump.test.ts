import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { charts } from '../../../src/actors/journal/chart-versions.ts';
import { type OpenedLedger, openLedger } from '../../../src/actors/ledger/ledger.ts';
import { openPostgresLedger } from '../../../src/actors/ledger/postgres-ledger.ts';
import { checkJournal } from '../../../src/actors/store/check-journal.ts';
import { openDatabase } from '../../../src/actors/store/database.ts';
import { dumpTables, exportStore } from '../../../src/actors/store/dump/export-store.ts';
import { importStore } from '../../../src/actors/store/dump/import-store.ts';
import { parsePostgresAddress } from '../../../src/actors/store/postgres/address.ts';
import { forgetFile } from '../../../src/actors/store/rows/forget-file.ts';
import type { Work } from '../../../src/actors/store/rows/rows.ts';
import { embeddedAt } from '../../support/ledger.ts';
import { testUnless } from '../../support/needs.ts';
import { freshAddress, noPostgres } from '../../support/postgres.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const told = { redact: (text: string) => text, clock: Date.now, log: () => {} };

const inSqlite = async (projectRoot = temporaryFolder()): Promise<OpenedLedger> => {
  const db = openDatabase({ file: join(temporaryFolder(), 'journal.db') });
  const opened = openLedger({ db, projectRoot, ...told });
  onTestFinished(opened.store.close);
  return opened;
};

const inPostgres = async (): Promise<OpenedLedger> => {
  const opened = await openPostgresLedger(parsePostgresAddress(await freshAddress(), {}), {
    projectRoot: temporaryFolder(),
    filesPrefix: join(temporaryFolder(), 'tasks'),
    ...told,
  });
  onTestFinished(opened.store.close);
  return opened;
};

const note = (taskId: string, data: object = {}) => ({
  taskId,
  attempt: 1,
  type: 'log',
  at: Date.now(),
  data: JSON.stringify(data),
  cause: null,
});

/** Something in every table, with texts that are hard to carry. */
const fill = async ({ store, ledger }: OpenedLedger): Promise<void> => {
  const tracker = embeddedAt(temporaryFolder(), {}, ledger);
  const task = { description: 'é "q" \u2028 🙂\n\\u0000', priority: 2, labels: ['a'] };
  const first = await tracker.create({ ...task, title: 'one', dependencies: [] });
  for (let n = 0; n < 9; n += 1) {
    const digest = `image-${n}`;
    await store.images.upload({ digest, mediaType: 'image/png', data: 'aGk=' }, 2);
    await store.images.attach(first.id, [{ digest, name: 'é 🙂' }]);
  }
  await tracker.create({ ...task, title: 'two', dependencies: [first.id] });
  await store.join({ charts, node: 'a', leaseMs: 60_000, name: 'a' });
  const actor = {
    ...{ id: first.id, taskId: first.id, version: 1, pending: true, changedAt: 5 },
    snapshot: '{"value":{"started":"working"},"context":{"attempt":1}}',
  };
  const usage = {
    model_calls: 1,
    tool_calls: 2,
    input_tokens: 3,
    output_tokens: 4,
    cached_tokens: 0,
    cache_write_tokens: 2,
    cost_usd: 0.1,
  };
  const ended = { role: 'engineer', execution_seconds: 2.5, usage };
  await store.commit(
    { entries: [], commit: { node: 'a', number: 1 } },
    {
      actor,
      guard: { revision: 0, attempt: 1 },
      entries: Array.from({ length: 250 }, (_, n) => note(first.id, { n })),
    },
    {
      entries: [{ ...note('bd-x', ended), type: 'completed' }],
      request: { id: 'r', taskId: 'bd-x' },
    },
    {
      entries: [],
      step: { taskId: first.id, attempt: 1, key: 'think:1', intent: '{}', result: null },
    },
  );
};

const carries = async (from: OpenedLedger, to: OpenedLedger): Promise<void> => {
  await fill(from);
  const file = join(temporaryFolder(), 'a');

  const exported = await exportStore(from.ledger.db, file, '1');
  const imported = await importStore(to.ledger.db, file);

  expect(imported).toEqual(exported);
  expect(exported).toMatchObject({
    journal: { rows: 251 },
    tasks: { rows: 2 },
    steps: { rows: 1 },
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect((await checkJournal(to.ledger.db)).faults).toEqual([]);
  const list = async ({ ledger }: OpenedLedger) => embeddedAt(temporaryFolder(), {}, ledger).list();
  expect(await list(to)).toEqual(await list(from));
  await to.store.join({ charts, node: 'b', leaseMs: 60_000, name: 'b' });
  await to.store.takeOverFrom('b', 'left', charts);
  expect((await to.store.tasks('pending')).map(({ owner }) => owner)).toEqual(['b']);
  expect((await to.store.commit({ entries: [note('bd-x')] })).entries[0]).toMatchObject({
    seq: 252,
    taskSeq: 2,
  });
  expect(await to.store.counters()).toMatchObject({ completed: 1, executionSeconds: 2.5 });
};

test('a store is carried from SQLite to SQLite, whole', async () => {
  await carries(await inSqlite(), await inSqlite());
});

testUnless(noPostgres)(
  'a store is carried from SQLite to PostgreSQL, whole',
  { tags: ['slow'] },
  async () => {
    await carries(await inSqlite(), await inPostgres());
  },
);

testUnless(noPostgres)('a store is carried from PostgreSQL to SQLite, whole', async () => {
  await carries(await inPostgres(), await inSqlite());
});

test('every column is carried, but what each database and each start of a server makes itself', async () => {
  const { db } = (await inSqlite()).ledger;
  const left: string[] = [];
  for (const { name, columns } of dumpTables) {
    const all = await db.ask(db.prepare('select name from pragma_table_info(?)').all(name));
    const rest = all.map((row) => String(row['name'])).filter((each) => !columns.includes(each));
    left.push(...rest.map((column) => `${name}.${column}`));
  }

  expect(left.filter((each) => !/^nodes\.|\.position$/.test(each))).toEqual([]);
});

test('a task that waits for a slot can be taken by any server after a move', async () => {
  const [from, to] = [await inSqlite(), await inSqlite()];
  await from.store.join({ charts, node: 'a', leaseMs: 60_000, name: 'a' });
  const actor = { id: 'bd-x', taskId: 'bd-x', version: 1, pending: true, changedAt: 5 };
  const waits = { role: 'engineer', priority: 2 };
  await from.store.commit(
    { entries: [], commit: { node: 'a', number: 1 } },
    {
      actor: { ...actor, snapshot: '{}', waits },
      guard: { revision: 0, attempt: 0 },
      entries: [],
    },
  );
  const file = join(temporaryFolder(), 'a');
  await exportStore(from.ledger.db, file, '1');

  await importStore(to.ledger.db, file);

  await to.store.join({ charts, node: 'b', leaseMs: 60_000, name: 'b' });
  await to.store.takeOverFrom('b', 'left', charts);
  expect(await to.store.loads()).toEqual([{ node: 'b', running: 0, waiting: 1 }]);
});

test('the numbers of a journal go on behind entries that were removed', async () => {
  const [from, to] = [await inSqlite(), await inSqlite()];
  await from.store.commit({ entries: [note('bd-a'), note('bd-a')] });
  const { db } = from.ledger;
  await db.write(() => db.prepare('delete from journal').run());
  const file = join(temporaryFolder(), 'a');
  await exportStore(db, file, '1');

  await importStore(to.ledger.db, file);

  expect((await to.store.commit({ entries: [note('bd-b')] })).entries[0]?.seq).toBe(3);
});

/** The rows of a table in an export, with the hash that they have then. */
const withRows = (text: string, table: string, change: (rows: readonly string[]) => string[]) => {
  const lines = text.split('\n');
  const [from, to] = [`{"table":"${table}"`, `{"end":"${table}"`].map((begin) =>
    lines.findIndex((line) => line.startsWith(begin)),
  );
  const rows = change(lines.slice((from ?? 0) + 1, to));
  const sha256 = createHash('sha256')
    .update(rows.map((row) => `${row}\n`).join(''))
    .digest('hex');
  const end = JSON.stringify({ end: table, rows: rows.length, sha256 });
  return [...lines.slice(0, (from ?? 0) + 1), ...rows, end, ...lines.slice((to ?? 0) + 1)].join(
    '\n',
  );
};

const refusesRowsThatAreTwice = async (to: OpenedLedger): Promise<void> => {
  const from = await inSqlite();
  await fill(from);
  const file = join(temporaryFolder(), 'a');
  await exportStore(from.ledger.db, file, '1');
  const text = readFileSync(file, 'utf8');
  for (const [table, place, row] of [
    ['tasks', 2, '(bd-\\w+)'],
    ['journal', 251, '1'],
    ['journal', 20, '1'],
    ['steps', 1, 'bd-\\w+ 1 think:1'],
  ] as const) {
    writeFileSync(
      file,
      withRows(text, table, (rows) => [
        ...rows.slice(0, place),
        rows[0] ?? '',
        ...rows.slice(place),
      ]),
    );
    const head = text.split('\n').findIndex((line) => line.startsWith(`{"table":"${table}"`)) + 1;

    await expect(importStore(to.ledger.db, file)).rejects.toThrow(
      new RegExp(
        `line ${head + place + 1} is a second row ${row} of ${table}; remove one of the two from the store`,
      ),
    );
    expect((await to.store.tasks('pending')).length).toBe(0);
  }
  writeFileSync(file, text);
  expect((await importStore(to.ledger.db, file))['tasks']).toMatchObject({ rows: 2 });
};

test('an export in which a row is twice is refused, with the line and what to do', async () => {
  await refusesRowsThatAreTwice(await inSqlite());
});

testUnless(noPostgres)(
  'an export in which a row is twice is refused for PostgreSQL too',
  { tags: ['slow'] },
  async () => {
    await refusesRowsThatAreTwice(await inPostgres());
  },
);

test.each([
  ['cut off', (text: string) => text.slice(0, text.length / 2), 'it ends too early'],
  [
    'changed in a row',
    (text: string) => text.replace('{\\"n\\":7}', '{\\"n\\":8}'),
    'the rows of journal are not as they were exported',
  ],
  [
    'without a row',
    (text: string) => text.replace(/^\["bd-x".*\n/m, ''),
    'are not as they were exported',
  ],
  ['another file', () => 'hello\n', 'it is no export of a store'],
])('a file that is %s is refused, and nothing of it stays', async (_, change, problem) => {
  const [from, to] = [await inSqlite(), await inSqlite()];
  await fill(from);
  const file = join(temporaryFolder(), 'a');
  await exportStore(from.ledger.db, file, '1');
  writeFileSync(file, change(readFileSync(file, 'utf8')));

  await expect(importStore(to.ledger.db, file)).rejects.toThrow(problem);

  expect([await to.store.lastSeq(), await to.ledger.db.ask(to.ledger.table.count())]).toEqual([
    0, 0,
  ]);
});

test('an export for which the disk has no room says so and leaves nothing', async () => {
  const from = await inSqlite();
  await fill(from);
  const file = join(temporaryFolder(), 'a');
  symlinkSync('/dev/full', `${file}.partial`);

  await expect(exportStore(from.ledger.db, file, '1')).rejects.toThrow(
    `${file} cannot be written: ENOSPC: no space left on device`,
  );

  expect(readdirSync(dirname(file))).toEqual([]);
});

test('a store that a server uses takes nothing before the server has left', async () => {
  const [from, to] = [await inSqlite(), await inSqlite()];
  await fill(from);
  const file = join(temporaryFolder(), 'a');
  await exportStore(from.ledger.db, file, '1');
  await to.store.join({ charts, node: 'b1', leaseMs: 60_000, name: 'b' });

  await expect(importStore(to.ledger.db, file)).rejects.toThrow(
    'the server b uses the store; stop it first (agent nodes names all), or wait until its lease',
  );
  await to.store.leave('b1');

  expect((await importStore(to.ledger.db, file))['tasks']).toMatchObject({ rows: 2 });
});

test('a store that is not empty takes nothing', async () => {
  const [from, to] = [await inSqlite(), await inSqlite()];
  await to.store.commit({ entries: [note('bd-a')] });
  const file = join(temporaryFolder(), 'a');
  await exportStore(from.ledger.db, file, '1');

  await expect(importStore(to.ledger.db, file)).rejects.toThrow(
    'the store is not empty: it has 0 tasks and 1 journal entry',
  );
  await expect(importStore(from.ledger.db, `${file}.none`)).rejects.toThrow(
    'cannot be imported: ENOENT',
  );
  await expect(exportStore(from.ledger.db, join(file, 'b'), '1')).rejects.toThrow(
    'cannot be written',
  );
  expect(existsSync(`${file}.partial`)).toBe(false);
});

test('a task that the tasks file of the project does not know, such as that of a clone, stays', async () => {
  const [ownRoot, clone] = [temporaryFolder(), temporaryFolder()];
  const from = await inSqlite(ownRoot);
  const tracker = embeddedAt(ownRoot, {}, from.ledger);
  const task = { description: '', priority: 2, labels: [], dependencies: [] };
  const first = await tracker.create({ ...task, title: 'one' });
  await from.ledger.exchange.flush();
  cpSync(join(ownRoot, '.beads'), join(clone, '.beads'), { recursive: true });
  const second = await tracker.create({ ...task, title: 'two' });
  await tracker.claim(first.id);
  await from.ledger.exchange.flush();
  const file = join(temporaryFolder(), 'a');
  await exportStore(from.ledger.db, file, '1');

  const to = await inSqlite(clone);
  await importStore(to.ledger.db, file);
  const carried = embeddedAt(clone, {}, to.ledger);

  expect(await carried.find(first.id)).toMatchObject({ status: 'in_progress' });
  expect(await carried.find(second.id)).toMatchObject({ title: 'two' });
});

testUnless(noPostgres)(
  'an import goes on after it stood still for longer than a server may',
  { tags: ['slow'] },
  async () => {
    const [from, to] = [await inSqlite(), await inPostgres()];
    await fill(from);
    const file = join(temporaryFolder(), 'a');
    const exported = await exportStore(from.ledger.db, file, '1');
    const { db } = to.ledger;
    let pauses = 0;
    const pausing: typeof db.prepare = (sql) => {
      const statement = db.prepare(sql);
      if (!sql.startsWith('insert into tasks')) return statement;
      return {
        ...statement,
        *all(...values) {
          pauses += 1;
          if (pauses === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
          return yield* statement.all(...values);
        },
      };
    };

    expect(await importStore({ ...db, prepare: pausing }, file)).toEqual(exported);
    expect(pauses).toBeGreaterThan(0);
  },
);

testUnless(noPostgres)(
  'an import of many tasks ends in time, also after one that failed',
  { tags: ['slow'] },
  async () => {
    const { db } = (await inPostgres()).ledger;
    const add = db.prepare(
      `insert into tasks (id, line, base, status, done, created_at, unmet, revision)
       select 'bd-' || n, '{}', case when n % 2 = 0 then 'x' end, 'open', 0, '2026', 0, 0
       from generate_series(cast(? as integer), cast(? as integer)) as n`,
    );
    const fill = function* (): Work<void> {
      yield* db.prepare('alter table tasks disable trigger tasks_added').run();
      for (let n = 0; n < 60_000; n += 1_000) yield* add.run(n + 1, n + 1_000);
    };
    const failed = db.write(function* () {
      yield* fill();
      throw new Error('the first try fails');
    });
    await expect(failed).rejects.toThrow('the first try fails');
    // PostgreSQL takes the table for nearly empty then.
    await db.write(() => db.prepare('analyze tasks').run());

    await db.write(function* () {
      yield* fill();
      yield* forgetFile(db);
    });

    const held = db.prepare("select 1 as one from tasks where base is null or base <> '' limit 1");
    expect(await db.ask(held.all())).toEqual([]);
  },
);
