import { expect, onTestFinished, vi } from 'vitest';
import { checkJournal } from '../../../src/actors/store/check-journal.ts';
import type { Store } from '../../../src/actors/store/port.ts';
import { parsePostgresAddress } from '../../../src/actors/store/postgres/address.ts';
import {
  createPostgresStore,
  openPostgresDatabase,
  type PostgresDatabase,
} from '../../../src/actors/store/postgres/database.ts';
import { describeStore, type StoreScene } from '../../contracts/store.ts';
import { startDatabaseProxy } from '../../support/database-proxy.ts';
import { testUnless } from '../../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../../support/postgres.ts';

const redact = (text: string): string => text;

const openDatabase = (url: string): Promise<PostgresDatabase> =>
  openPostgresDatabase(parsePostgresAddress(url, {}));

const postgresScene = async (): Promise<StoreScene> => {
  const url = await freshAddress();
  const stores: Store[] = [];
  const open = async (): Promise<Store> => {
    const store = createPostgresStore(await openDatabase(url), { redact });
    stores.push(store);
    return store;
  };
  return {
    store: await open(),
    beside: open,
    reopen: () => {
      stores.pop()?.close();
      return open();
    },
    setNow: async (ms) => {
      await inPostgres(
        url,
        `create or replace function clock_ms() returns bigint language sql volatile as 'select ${ms}::bigint'`,
      );
    },
    close: () => {
      for (const store of stores) store.close();
    },
  };
};

describeStore('PostgreSQL', postgresScene, { skip: noPostgres, isSlow: true });

const needsPostgres = testUnless(noPostgres);

const opened = async (url: string): Promise<{ db: PostgresDatabase; store: Store }> => {
  const db = await openDatabase(url);
  const store = createPostgresStore(db, { redact });
  onTestFinished(store.close);
  return { db, store };
};

const note = (taskId: string, data = '{}') => ({
  taskId,
  attempt: 1,
  type: 'log',
  at: 1,
  data,
  cause: null,
});

needsPostgres('commits read no whole table, also when the tables were empty before', async () => {
  const url = await freshAddress();
  const { store } = await opened(url);
  for (let round = 0; round < 40; round += 1)
    await store.commit(
      ...Array.from({ length: 8 }, (_, n) => {
        const id = `bd-${round}-${n}`;
        const actor = { id, taskId: id, version: 1, pending: true, changedAt: 0, snapshot: '{}' };
        const guard = { revision: 0, attempt: 1 };
        return { actor, guard, entries: [{ ...note(id), type: 'snapshot' }] };
      }),
    );
  store.close();

  await vi.waitFor(async () => {
    const tables = await inPostgres(
      url,
      `select relname, seq_scan::int, idx_scan::int from pg_stat_user_tables
       where schemaname = current_schema() and relname in ('actors', 'histories')`,
    );
    expect(tables).toHaveLength(2);
    for (const { seq_scan, idx_scan } of tables) {
      expect(Number(idx_scan)).toBeGreaterThan(100);
      expect(Number(seq_scan)).toBeLessThan(10);
    }
  });
});

needsPostgres('a commit waits for the database twice, whatever it holds', async () => {
  const proxy = await startDatabaseProxy(await freshAddress(), onTestFinished);
  const { db, store } = await opened(proxy.address);
  const actor = { id: 'bd-a', taskId: 'bd-a', version: 1, pending: true, changedAt: 0 };
  const commit = (revision: number) =>
    store.commit(
      { entries: [], commit: { node: 'n', number: revision + 1 } },
      {
        actor: { ...actor, snapshot: '{}' },
        guard: { revision, attempt: 1 },
        entries: Array.from({ length: 20 }, (_, n) => ({
          ...note('bd-a', JSON.stringify({ task: { title: 'a'.repeat(2_000), n } })),
          type: 'snapshot',
        })),
        step: { taskId: 'bd-a', attempt: 1, key: 'k', intent: '{}', result: '{}' },
      },
      {
        actor: { ...actor, id: 'bd-a#1', snapshot: '{}' },
        guard: { revision, attempt: 1 },
        entries: [note('bd-b')],
      },
    );
  // The first ones read what a process reads once.
  await commit(0);
  await commit(1);
  const before = proxy.turns();

  const { entries, stale } = await commit(2);

  expect([entries.length, stale]).toEqual([21, []]);
  // Its first words come after the answer to the commit before.
  expect(proxy.turns() - before).toBe(2);
  expect((await checkJournal(db)).faults).toEqual([]);
});

needsPostgres('two programs that commit at once number the journal without a gap', async () => {
  const url = await freshAddress();
  const [one, two] = [await opened(url), await opened(url)];
  const heard: number[] = [];
  one.store.subscribe(
    {
      entries: (entries) => void heard.push(...entries.map(({ seq }) => seq)),
      failed: (error) => {
        throw error;
      },
    },
    { after: 0 },
  );

  await Promise.all(
    [one, two].flatMap(({ store }, at) =>
      Array.from({ length: 50 }, () => store.commit({ entries: [note('bd-a'), note(`bd-${at}`)] })),
    ),
  );

  const all = Array.from({ length: 200 }, (_, at) => at + 1);
  expect((await two.store.read({ after: 0, limit: 300 })).map(({ seq }) => seq)).toEqual(all);
  await expect.poll(() => heard.length).toBe(200);
  expect(heard).toEqual(all);
  expect((await checkJournal(one.db)).faults).toEqual([]);
});

needsPostgres(
  'a subscriber hears of a commit of another server without a commit of its own',
  async () => {
    const url = await freshAddress();
    const [one, two] = [await opened(url), await opened(url)];
    const heard: string[] = [];
    one.store.subscribe({
      entries: (entries) => void heard.push(...entries.map(({ data }) => data)),
      failed: (error) => {
        throw error;
      },
    });

    await two.store.commit({ entries: [note('bd-a', '{"from":"two"}')] });

    await expect.poll(() => heard).toEqual(['{"from":"two"}']);
  },
);

needsPostgres(
  'a state whose texts hold escapes that JSON of PostgreSQL refuses is looked through',
  async () => {
    const url = await freshAddress();
    const { db } = await opened(url);
    const snapshot = JSON.stringify({ value: 'complete', title: 'a\0b \ud800 \\u0000 \\\\u0000' });

    const value = db.prepare("select json(?) ->> 'value' as value, json(?) ->> 'title' as title");

    expect(await db.ask(value.first(snapshot, snapshot))).toMatchObject({ value: 'complete' });
  },
);

needsPostgres('a statement that writes is refused outside of a transaction', async () => {
  const url = await freshAddress();
  const { db } = await opened(url);

  const write = db.ask(db.prepare("insert into ledger values ('a', 'b')").run());

  await expect(write).rejects.toThrow('read-only transaction');
});
