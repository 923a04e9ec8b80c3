import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { OpenedLedger } from '../../../src/actors/ledger/ledger.ts';
import { openPostgresLedger } from '../../../src/actors/ledger/postgres-ledger.ts';
import { parsePostgresAddress } from '../../../src/actors/store/postgres/address.ts';
import { describeTracker } from '../../contracts/tracker.ts';
import { embeddedAt } from '../../support/ledger.ts';
import { describeUnless } from '../../support/needs.ts';
import {
  freshAddress,
  holdInPostgres,
  inPostgres,
  noPostgres,
  ownServer,
} from '../../support/postgres.ts';
import { endOfFile, temporaryFolder } from '../../support/temporary.ts';

const atEnd = endOfFile();

const openLedgerAt = async (url: string, projectRoot: string): Promise<OpenedLedger> =>
  openPostgresLedger(parsePostgresAddress(url, {}), {
    projectRoot,
    filesPrefix: join(temporaryFolder(atEnd), 'tasks'),
    redact: (text) => text,
    clock: Date.now,
    log: () => {},
  });

describeUnless(noPostgres)(`${noPostgres ?? ''}`, () => {
  describeTracker(
    'embedded, in PostgreSQL',
    async () => {
      const root = temporaryFolder(atEnd);
      const { ledger, store } = await openLedgerAt(await freshAddress(), root);
      let now = Date.parse('2026-11-20T10:00:00.000Z');
      const clock = (): number => {
        now += 1;
        return now;
      };
      return {
        tracker: embeddedAt(root, { clock }, ledger),
        close: async () => store.close(),
      };
    },
    { many: 50, brief: true, tags: ['slow'] },
  );

  test('what the database refuses, or does not answer, has its own advice and none about a disk', {
    tags: ['slow'],
  }, async () => {
    const [root, url] = [temporaryFolder(), await freshAddress()];
    const { store, ledger } = await openLedgerAt(url, root);
    onTestFinished(store.close);
    const tracker = embeddedAt(root, {}, ledger);
    expect(await tracker.list()).toEqual([]);

    const release = await holdInPostgres(url, 'lock table tasks in access exclusive mode');
    await expect(tracker.list()).rejects.toMatchObject({
      code: 'tracker_unavailable',
      facts: {
        detail: expect.stringMatching(/does not answer: .*has locked its tables/),
        remedy: 'check the database and the network to it',
      },
    });
    await release();
    await inPostgres(url, 'alter table tasks rename column status to was');
    await expect(tracker.list()).rejects.toMatchObject({
      facts: {
        detail: expect.stringMatching(/refused it: .*does not exist/),
        remedy: 'look into the log of the database',
      },
    });
  });

  test('a file of tasks is taken into PostgreSQL, counted, and written again as it was', async () => {
    const root = temporaryFolder();
    const first = await openLedgerAt(await freshAddress(), root);
    onTestFinished(first.store.close);
    const tracker = embeddedAt(root, {}, first.ledger);
    const task = { description: '', priority: 2, labels: [], title: 'one' };
    const one = await tracker.create({ ...task, dependencies: [] });
    const two = await tracker.create({ ...task, title: 'two', dependencies: [one.id] });
    await first.ledger.exchange.flush();
    const file = join(root, '.beads', 'issues.jsonl');
    const text = readFileSync(file, 'utf8');

    const second = await openLedgerAt(await freshAddress(), root);
    onTestFinished(second.store.close);
    const taken = embeddedAt(root, {}, second.ledger);

    expect((await taken.list()).map(({ id, unmet }) => [id, unmet])).toEqual([
      [one.id, []],
      [two.id, [one.id]],
    ]);
    expect(await taken.count?.({ status: 'queued', unblocked: true })).toBe(1);
    await second.ledger.exchange.flush();
    expect(readFileSync(file, 'utf8')).toBe(text);
  });

  test('while the database is away, the advice is about the database, not the disk', {
    tags: ['slow'],
  }, async () => {
    const server = await ownServer();
    const root = temporaryFolder();
    const { ledger, store } = await openLedgerAt(server.address, root);
    onTestFinished(store.close);
    server.stop('immediate');

    const refused = embeddedAt(root, {}, ledger).list();

    await expect(refused).rejects.toThrow(/does not answer.*; check the database and the network/);
  });
});
