import { expect, onTestFinished, test, vi } from 'vitest';
import { DatabaseGoneError } from '../../../../src/actors/store/port.ts';
import { parsePostgresAddress } from '../../../../src/actors/store/postgres/address.ts';
import {
  createPostgresStore,
  openPostgresDatabase,
} from '../../../../src/actors/store/postgres/database.ts';
import { describeUnless } from '../../../support/needs.ts';
import { freshAddress, inPostgres, noPostgres, ownServer } from '../../../support/postgres.ts';

const note = { taskId: 'bd-a', attempt: 1, type: 'log', at: 1, data: '{}', cause: null };

const open = async (url: string) => {
  const db = await openPostgresDatabase(parsePostgresAddress(url, {}));
  onTestFinished(db.close);
  const store = createPostgresStore(db, { redact: (text) => text });
  const lost = vi.fn();
  db.onLost(lost);
  return { db, store, lost, write: async () => store.commit({ entries: [note] }) };
};
const setEnd = (url: string, seq: number) => inPostgres(url, `update journal_end set seq = ${seq}`);

describeUnless(noPostgres)('the end of the journal', () => {
  test('that is before what a process wrote refuses each later write, and is told once', async () => {
    const url = await freshAddress();
    const { write, lost } = await open(url);
    await write();
    await write();
    await setEnd(url, 1);

    await expect(write()).rejects.toThrow(
      /was restored to an earlier state .*; start the server again/,
    );
    await setEnd(url, 9);
    await expect(write()).rejects.toThrow(DatabaseGoneError);
    expect(lost).toHaveBeenCalledTimes(1);
  });

  test('is not what a notice of anybody says: it only causes a look', async () => {
    const url = await freshAddress();
    const [one, two] = [await open(url), await open(url)];
    await one.write();
    const schema = new URL(url).searchParams.get('schema');
    const seen: number[] = [];
    const see = (some: readonly { readonly seq: number }[]) =>
      void seen.push(...some.map(({ seq }) => seq));
    two.store.subscribe({ entries: see, failed: () => {} }, { after: 0 });
    await vi.waitFor(() => expect(seen).toEqual([1]), { timeout: 20_000 });

    await inPostgres(url, `select pg_notify('${schema}', '99999999999')`);
    await one.write();
    await vi.waitFor(() => expect(seen).toEqual([1, 2]), { timeout: 10_000 });
    const later: number[] = [];
    two.store.subscribe({
      entries: (some) => void later.push(...some.map(({ seq }) => seq)),
      failed: () => {},
    });
    await two.write();
    await one.write();

    await vi.waitFor(() => expect(seen).toEqual([1, 2, 3, 4]), { timeout: 10_000 });
    await vi.waitFor(() => expect(later).toEqual([3, 4]), { timeout: 10_000 });
  });

  test('that is before what a process has read of others is noticed too', async () => {
    const url = await freshAddress();
    const [one, two] = [await open(url), await open(url)];
    const entries = vi.fn();
    two.store.subscribe({ entries, failed: () => {} });
    await one.write();
    await one.write();
    await vi.waitFor(() => expect(entries.mock.calls.flat(2)).toHaveLength(2));
    await setEnd(url, 1);

    await expect(two.write()).rejects.toThrow(/was restored to an earlier state/);
  });

  test('cannot be moved by a notice, which everybody may send', async () => {
    const url = await freshAddress();
    const { db, write, lost } = await open(url);
    const heard = vi.fn();
    db.onCommitOfOthers(heard);
    await vi.waitFor(() => expect(heard).toHaveBeenCalledWith(0));
    await inPostgres(url, `select pg_notify('${new URL(url).searchParams.get('schema')}', '99')`);
    await vi.waitFor(() => expect(heard).toHaveBeenCalledWith(99));

    expect((await write()).entries).toMatchObject([{ seq: 1 }]);
    expect(lost).not.toHaveBeenCalled();
  });

  test('in tables that were made anew, or are empty or gone, is not the one of before', async () => {
    const url = await freshAddress();
    const schema = new URL(url).searchParams.get('schema');
    const drop = () => inPostgres(url, `drop schema ${schema} cascade`);
    const first = await open(url);
    await first.write();
    await drop();
    const second = await open(url);

    await expect(first.write()).rejects.toThrow(/were made anew/);
    await second.write();
    await drop();
    await expect(second.write()).rejects.toThrow(/are gone/);
    const third = await open(url);
    await inPostgres(url, 'truncate journal_end');
    await expect(third.write()).rejects.toThrow(/were emptied/);
  });

  test('is looked at when the connection comes back, by a server that writes nothing', {
    tags: ['slow'],
  }, async () => {
    const { address } = await ownServer();
    const { write, lost } = await open(address);
    await write();
    await setEnd(`${address}?schema=agent_task_server`, 0);
    await inPostgres(
      address,
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'agent-task-server'",
    );

    await vi.waitFor(() => expect(lost).toHaveBeenCalledTimes(1), { timeout: 20_000 });
  });
});
