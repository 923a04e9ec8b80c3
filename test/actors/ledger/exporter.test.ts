import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { charts } from '../../../src/actors/journal/chart-versions.ts';
import { createExporterRows } from '../../../src/actors/ledger/exporter.ts';
import { openLedger } from '../../../src/actors/ledger/ledger.ts';
import { openDatabase } from '../../../src/actors/store/database.ts';
import { embeddedAt } from '../../support/ledger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const task = { title: 'one', description: '', dependencies: [], priority: 2, labels: [] };

/** A server with a project folder of its own, on tables that others use, too. */
const serverOn = (
  file: string,
  name: string,
  chosen: string | null,
  { root = temporaryFolder(), claims = true, beforeWrite = () => {} } = {},
) => {
  const opened = openDatabase({ file });
  const db: typeof opened = {
    ...opened,
    write: (work) => {
      beforeWrite();
      return opened.write(work);
    },
  };
  const { ledger, store } = openLedger({
    ...{ db, projectRoot: root, exporter: { name, chosen, claims } },
    ...{ clock: Date.now, log: () => {}, redact: (text: string) => text },
  });
  const issues = join(root, '.beads', 'issues.jsonl');
  mkdirSync(join(root, '.beads'), { recursive: true });
  return {
    ...{ db, root, issues, store, exchange: ledger.exchange },
    tracker: embeddedAt(root, {}, ledger),
    lines: () => readFileSync(issues, 'utf8').trimEnd().split('\n'),
  };
};

test('the first of several servers on the same tables keeps the file; the files of the others are neither read nor written', async () => {
  const file = join(temporaryFolder(), 'journal.db');
  const [first, second] = [serverOn(file, 'a', null), serverOn(file, 'b', null)];
  const { id } = await first.tracker.create(task);
  await first.exchange.flush();
  writeFileSync(second.issues, '');

  const other = await second.tracker.create({ ...task, title: 'two' });
  await second.exchange.flush();
  await first.exchange.flush();

  expect(await second.tracker.find(id)).not.toBeNull();
  expect(readFileSync(second.issues, 'utf8')).toBe('');
  const ids = first.lines().map((line) => JSON.parse(line).id);
  expect(ids.toSorted()).toEqual([id, other.id].toSorted());
});

test('a server that is chosen takes the file over: what its own lacks stays, and the other one stops writing', async () => {
  const file = join(temporaryFolder(), 'journal.db');
  const first = serverOn(file, 'a', null);
  const { id } = await first.tracker.create(task);
  await first.exchange.flush();
  const chosen = serverOn(file, 'b', 'b');
  writeFileSync(
    chosen.issues,
    `${JSON.stringify({ id: 'bd-old', title: 'theirs', status: 'open', priority: 2, issue_type: 'task', created_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:00Z' })}\n`,
  );

  await chosen.exchange.flush();
  const later = await first.tracker.create({ ...task, title: 'later' });
  await first.exchange.flush();
  await chosen.exchange.flush();

  expect((await first.tracker.list()).map((one) => one.id).toSorted()).toEqual(
    ['bd-old', id, later.id].toSorted(),
  );
  expect(chosen.lines()).toHaveLength(3);
  expect(first.lines()).toHaveLength(1);
  expect(existsSync(first.issues)).toBe(true);
});

test('a command beside the servers reads and writes the file only where it is kept', async () => {
  const file = join(temporaryFolder(), 'journal.db');
  const early = serverOn(file, 'b', null, { claims: false });
  await early.tracker.create({ ...task, title: 'zero' });
  await early.exchange.flush();
  const first = serverOn(file, 'a', null);
  const { id } = await first.tracker.create(task);
  await first.exchange.flush();
  const command = serverOn(file, 'b', null, { claims: false, root: early.root });
  writeFileSync(command.issues, first.lines().slice(0, 1).join('\n'));
  const own = serverOn(file, 'a', null, { claims: false, root: first.root });

  expect(await command.tracker.find(id)).not.toBeNull();
  await command.exchange.flush();
  const later = await own.tracker.create({ ...task, title: 'later' });
  await own.exchange.flush();

  expect(command.lines()).toHaveLength(1);
  expect(first.lines()).toHaveLength(3);
  expect(first.lines().join()).toContain(later.id);
  expect(await first.tracker.list()).toHaveLength(3);
});

test('a server whose file another one took over reads it no more, also when somebody edits it', async () => {
  const file = join(temporaryFolder(), 'journal.db');
  const first = serverOn(file, 'a', null);
  const { id } = await first.tracker.create(task);
  await first.exchange.flush();
  const chosen = serverOn(file, 'b', 'b');
  await chosen.exchange.flush();
  const later = await chosen.tracker.create({ ...task, title: 'later' });
  await chosen.exchange.flush();
  writeFileSync(first.issues, `${first.lines().join('\n')}\n\n`);

  expect(await first.tracker.find(later.id)).not.toBeNull();
  expect((await chosen.tracker.list()).map((one) => one.id).toSorted()).toEqual(
    [id, later.id].toSorted(),
  );
});

test('tasks of a file that is newer than the tables, which were restored meanwhile, come back', async () => {
  const server = serverOn(join(temporaryFolder(), 'journal.db'), 'a', null);
  const { db, tracker, exchange } = server;
  const first = await tracker.create(task);
  await exchange.flush();
  const before = await db.ask(db.prepare('select * from ledger').all());
  const lost = await tracker.create({ ...task, title: 'lost' });
  await exchange.flush();
  await db.write(function* () {
    yield* db.prepare('delete from tasks where id = ?').run(lost.id);
    for (const { key = null, value = null } of before)
      yield* db.prepare('update ledger set value = ? where key = ?').run(value, key);
  });

  const later = await tracker.create({ ...task, title: 'later' });
  await exchange.flush();

  const ids = [first.id, lost.id, later.id].toSorted();
  expect((await tracker.list()).map(({ id }) => id).toSorted()).toEqual(ids);
  expect(server.lines()).toHaveLength(3);
});

test('a server from which the file is taken while it writes it does not say that the other file has its tasks', async () => {
  const file = join(temporaryFolder(), 'journal.db');
  const other = openDatabase({ file });
  const root = temporaryFolder();
  const isWritten = (): boolean => existsSync(join(root, '.beads', 'issues.jsonl'));
  let taken = false;
  const first = serverOn(file, 'a', null, {
    root,
    beforeWrite: () => {
      if (taken || !isWritten()) return;
      taken = true;
      void other.write(createExporterRows(other, { name: 'b', chosen: 'b' }).claim);
    },
  });
  await first.tracker.create(task);

  await first.exchange.flush();

  expect(taken).toBe(true);
  const held = await other.ask(other.prepare('select base from tasks').all());
  expect(held).toEqual([{ base: '' }]);
  expect(
    await other.ask(other.prepare("select 1 as one from ledger where key = 'file'").all()),
  ).toEqual([]);
});

test('the others say that nobody writes the file while its server does not run', async () => {
  const file = join(temporaryFolder(), 'journal.db');
  const [first, second] = [serverOn(file, 'a', null), serverOn(file, 'b', null)];
  await first.store.join({ charts, node: 'a1', leaseMs: 60_000, name: 'a' });
  await first.tracker.create(task);
  await first.exchange.flush();

  const running = await second.tracker.check();
  await first.store.leave('a1');

  expect(running).toEqual({ ok: true, detail: 'embedded, 1 task' });
  expect((await first.tracker.check()).detail).toBe('embedded, 1 task');
  expect((await second.tracker.check()).detail).toBe(
    'embedded, 1 task; nobody writes .beads/issues.jsonl: its server a does not run; start that one, or let this one write it: agent config set tracker.export_node b, and agent server restart',
  );
  const chosen = serverOn(file, 'b', 'b');
  expect((await chosen.tracker.check()).detail).toBe('embedded, 1 task');
});
