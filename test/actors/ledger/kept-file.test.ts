import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { aTask } from '../../contracts/tracker.ts';
import { embeddedAt, ledgerAt } from '../../support/ledger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** What we do not change in `.beads/issues.jsonl` stays as its writer left it. */

const times = '"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"';
const lineOf = (id: string, more = ''): string => `{"id":"${id}","title":"${id}",${times}${more}}`;

const projectWith = (text: string) => {
  const root = temporaryFolder();
  const file = join(root, '.beads', 'issues.jsonl');
  mkdirSync(join(root, '.beads'));
  writeFileSync(file, text);
  const ledger = ledgerAt(root);
  return {
    file,
    ledger,
    tracker: embeddedAt(root, {}, ledger),
    save: ledger.exchange.flush,
    text: () => readFileSync(file, 'utf8'),
  };
};

/** The text as it is when lines with one of these ids are left out. */
const without = (text: string, ...ids: readonly string[]): readonly string[] =>
  text.split('\n').filter((line) => !ids.some((id) => line.includes(`"id":"${id}"`)));

test.each([
  ['another order than by id', ['z-1', 'a-1', 'm-1'].map((id) => `${lineOf(id)}\n`).join('')],
  ['CRLF', ['a-1', 'm-1', 'z-1'].map((id) => `${lineOf(id)}\r\n`).join('')],
  ['a byte order mark', `\ufeff${lineOf('a-1')}\n${lineOf('m-1')}\n`],
  ['no line feed at its end', `${lineOf('a-1')}\n${lineOf('m-1')}`],
  ['blank lines', `\n${lineOf('m-1')}\n\n${lineOf('a-1')}\n\n`],
  ['lines that are no tasks', `${lineOf('m-1')}\n{"_type":"memory","n":1}\n${lineOf('a-1')}\n`],
])('an edit changes one line of a file with %s', async (_, before) => {
  const { tracker, save, text } = projectWith(before);

  await tracker.edit('m-1' as TaskId, { priority: 1 });
  await save();

  expect(
    JSON.parse(
      text()
        .split('\n')
        .find((line) => line.includes('"m-1"')) ?? '',
    ),
  ).toMatchObject({ priority: 1 });
  const newLine =
    text()
      .split('\n')
      .find((line) => line.includes('"m-1"')) ?? '';
  const oldLine = before.split('\n').find((line) => line.includes('"m-1"')) ?? '';
  expect(text().replace(newLine.trim(), oldLine.trim())).toBe(before);
});

test('a new task goes to its place in a file that is sorted by id, and to the end of another', async () => {
  const sorted = projectWith(['aa-1', 'zz-1'].map((id) => `${lineOf(id)}\r\n`).join(''));
  const other = projectWith([lineOf('zz-1'), lineOf('aa-1')].join('\n'));

  const idsAfter = async ({ tracker, save, text }: ReturnType<typeof projectWith>) => {
    const made = [
      (await tracker.create(aTask({ title: 'one' }))).id,
      (await tracker.create(aTask({ title: 'two' }))).id,
    ];
    await save();
    const ids = text()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).id as string);
    return { made, ids };
  };
  const inSorted = await idsAfter(sorted);
  const inOther = await idsAfter(other);

  expect(inSorted.ids).toEqual(['aa-1', ...inSorted.made, 'zz-1'].sort());
  expect(sorted.text().replaceAll('\r\n', '')).not.toContain('\n');
  expect(inOther.ids).toEqual(['zz-1', 'aa-1', ...inOther.made]);
});

test('a removed task takes its line with it, and no other', async () => {
  const before = ['z-1', 'a-1', 'm-1'].map((id) => `${lineOf(id)}\n`).join('');
  const { tracker, save, text } = projectWith(before);

  await tracker.remove('a-1' as TaskId);
  await save();

  expect(without(text(), 'a-1')).toEqual(without(before, 'a-1'));
});
