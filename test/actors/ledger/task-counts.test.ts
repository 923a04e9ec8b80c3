import { join } from 'node:path';
import Sqlite from 'libsql';
import { expect, test } from 'vitest';
import { openLedger } from '../../../src/actors/ledger/ledger.ts';
import { openDatabase, type SqliteDatabase } from '../../../src/actors/store/database.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { embeddedAt } from '../../support/ledger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const countedAnew = (db: SqliteDatabase) =>
  db.ask(
    db
      .prepare(
        `select status, unmet > 0 as blocked, count(*) as count from tasks group by 1, 2
         order by 1, 2`,
      )
      .all(),
  );
const kept = (db: SqliteDatabase) =>
  db.ask(
    db
      .prepare(
        'select status, blocked, count from task_counts where count <> 0 order by status, blocked',
      )
      .all(),
  );

test('the tasks are counted with each change, and once in a database that has no counts', async () => {
  const root = temporaryFolder();
  const file = join(root, 'journal.db');
  const db = openDatabase({ file });
  const { ledger } = openLedger({
    db,
    projectRoot: root,
    clock: Date.now,
    log: () => {},
    redact: (text) => text,
  });
  const tracker = embeddedAt(root, {}, ledger);
  const create = async (...dependencies: readonly TaskId[]): Promise<TaskId> => {
    const task = { title: 'x', description: '', priority: 2, labels: [], dependencies };
    return (await tracker.create(task)).id;
  };
  const first = await create();
  const second = await create(first);
  const third = await create(first, second);
  const counts = [kept(db)];
  const step = async (change: Promise<unknown>): Promise<void> => {
    await change;
    counts.push(kept(db));
    expect(kept(db)).toEqual(countedAnew(db));
  };

  await step(tracker.claim(first));
  await step(tracker.release(first, 'agent-failed'));
  await step(tracker.claim(first));
  await step(tracker.close(first, 'done'));
  await step(tracker.claim(second));
  await step(tracker.removeDependency(third, second));
  await step(tracker.reopen(first));
  const { table } = ledger;
  const removeSecond = function* () {
    yield* table.remove(second, yield* table.row(second));
  };
  await step((async () => db.write(removeSecond))());

  expect(new Set(counts.map((each) => JSON.stringify(each))).size).toBeGreaterThan(5);
  expect(await tracker.count({})).toBe(2);
  expect(await tracker.count({ status: 'queued', unblocked: true })).toBe(1);
  db.close();

  const older = new Sqlite(file);
  older.exec(`drop table task_counts; drop trigger task_added; drop trigger task_removed;
    drop trigger task_moved`);
  older.close();
  const again = openDatabase({ file });
  expect(kept(again)).toEqual(counts.at(-1));
  again.close();
});
