import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { issuesBytesAtMost } from '../../../src/actors/ledger/issues-file.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { aTask } from '../../contracts/tracker.ts';
import { embeddedAt, ledgerAt } from '../../support/ledger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** Files that a careless program or a hostile repository leaves as `.beads/issues.jsonl`. */

const openProject = () => {
  const root = temporaryFolder();
  const file = join(root, '.beads', 'issues.jsonl');
  const ledger = ledgerAt(root);
  mkdirSync(join(root, '.beads'));
  return { file, ledger, tracker: embeddedAt(root, {}, ledger), save: ledger.exchange.flush };
};

const line = (id: string, more = ''): string =>
  `{"id":"${id}","title":"${id}","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"${more}}`;

test('a program that empties the file and writes it anew in parts removes no task', async () => {
  const { file, ledger, tracker } = openProject();
  for (let n = 0; n < 20; n += 1) await tracker.create(aTask({ title: `task ${n}` }));
  await ledger.exchange.flush();
  const lines = readFileSync(file, 'utf8').split('\n');
  const lists: ReturnType<typeof tracker.list>[] = [];

  for (const pauseMs of [1, 100]) {
    const opened = openSync(file, 'w');
    for (const part of [lines.slice(0, 10).join('\n'), '\n', lines.slice(10).join('\n')]) {
      lists.push(tracker.list());
      await delay(pauseMs);
      writeSync(opened, part);
    }
    closeSync(opened);
  }
  lists.push(tracker.list());

  const counts = (await Promise.all(lists)).map(({ length }) => length);
  expect(counts).toEqual(counts.map(() => 20));
  const removed = ledger.db.prepare(
    "select count(*) as count from journal where data like '%removed%'",
  );
  expect((await ledger.db.ask(removed.first()))?.['count']).toBe(0);
});

test('a file that became blank removes no task, and says what to do', async () => {
  const { file, ledger, tracker, save } = openProject();
  await tracker.create(aTask());
  await save();

  writeFileSync(file, ' \n\n');
  const blank = await tracker.list();
  const problem = await ledger.exchange.problem();
  rmSync(file);
  await tracker.claim(blank[0]?.id as TaskId);
  await save();

  expect(blank).toHaveLength(1);
  expect(problem).toContain(
    'the file is blank; remove it, and the next change of a task writes it',
  );
  expect(readFileSync(file, 'utf8')).toContain(blank[0]?.id);
  expect(await ledger.exchange.problem()).toBeNull();
});

test('bytes that are not UTF-8 wait with their line, and stay as they are', async () => {
  const { file, ledger, tracker, save } = openProject();
  const bytes = Buffer.concat([
    Buffer.from(`${line('bd-1')}\n${line('bd-2', ',"notes":"caf').slice(0, -1)}`),
    Buffer.from([0xe9]),
    Buffer.from('"}\n'),
  ]);
  await tracker.create(aTask());
  await save();
  writeFileSync(file, bytes);

  await tracker.create(aTask({ title: 'another' }));
  await save();

  expect(await ledger.exchange.problem()).toContain('line 2 cannot be read: it is not UTF-8');
  expect(readFileSync(file).equals(bytes)).toBe(true);
});

test('an export replaces no content that was not taken in', {
  tags: ['slow'],
}, async () => {
  const { file, tracker, save } = openProject();
  await tracker.create(aTask({ title: 'ours' }));
  await save();
  const before = readFileSync(file, 'utf8');
  await tracker.create(aTask({ title: 'ours too' }));

  // It never stands still: each look finds it changed again.
  let n = 0;
  const write = (): void => {
    n += 1;
    writeFileSync(file, `${line(`bd-their${n}`)}\n`);
  };
  write();
  const writing = setInterval(write, 20);
  const saved = await save().then(
    () => 'saved',
    () => 'not now',
  );
  clearInterval(writing);
  const left = readFileSync(file, 'utf8');

  expect([saved, left]).toEqual(['not now', `${line(`bd-their${n}`)}\n`]);
  writeFileSync(file, before);
  await save();
  expect((await tracker.list()).map(({ title }) => title)).toEqual(['ours', 'ours too']);
});

test.each([
  ['nested too deeply', line('bd-a', `,"metadata":${'['.repeat(50_000)}${']'.repeat(50_000)}`)],
  ['too long', line('bd-a', `,"description":"${'x'.repeat(17 * 1024 * 1024)}"`)],
])('a line that is %s is named, and holds up nothing else', async (problem, bad) => {
  const { file, ledger, tracker } = openProject();
  writeFileSync(file, `${line('bd-b')}\n${bad}\n${line('bd-c')}\n`);

  const ids = (await tracker.list()).map(({ id }) => id);
  const claimed = await tracker.claim('bd-c' as TaskId);

  expect(ids).toEqual(['bd-b', 'bd-c']);
  expect(claimed).toEqual({ refusal: null });
  expect(await ledger.exchange.problem()).toMatch(
    new RegExp(`line 2 cannot be read: .*${problem}`),
  );
});

test('a file that is too large is not read and stays; the tasks can be used, and health says so', async () => {
  const { file, tracker, save } = openProject();
  const { id } = await tracker.create(aTask({ title: 'ours' }));
  await save();
  const bytes = issuesBytesAtMost + 1;

  truncateSync(file, bytes);

  await tracker.create(aTask({ title: 'ours too' }));
  expect((await tracker.list()).map((task) => task.title)).toEqual(['ours', 'ours too']);
  expect((await tracker.find(id))?.status).toBe('open');
  await save();
  expect(statSync(file).size).toBe(bytes);
  expect(await tracker.check()).toEqual({
    ok: false,
    detail: `.beads/issues.jsonl holds ${bytes} bytes, and at most ${issuesBytesAtMost} are read; make it smaller`,
  });

  rmSync(file);
  await save();
  expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(2);
});

test('a byte order mark and line ends of Windows are no part of a task', async () => {
  const { file, ledger, tracker, save } = openProject();
  writeFileSync(file, `\ufeff${line('bd-a')}\r\n${line('bd-b')}\r\n`);

  const ids = (await tracker.list()).map(({ id }) => id);
  await tracker.claim('bd-b' as TaskId);
  await save();

  expect(ids).toEqual(['bd-a', 'bd-b']);
  expect(await ledger.exchange.problem()).toBeNull();
  expect(readFileSync(file, 'utf8').split('\r\n')).toEqual([
    `\ufeff${line('bd-a')}`,
    expect.stringContaining('"status":"in_progress"'),
    '',
  ]);
});
