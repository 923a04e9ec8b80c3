import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lineOf as issueLine, issueOf } from '../../../src/actors/ledger/issue-line.ts';

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

test('what an edit does not change stays as its writer wrote it', async () => {
  const odd =
    '"big":12345678901234567890,"e":1e400,"f":1.0,"none":null,"assignee":null,"a\\"b":"\\u003c\\\\",' +
    '"deep": {"x": [1.50, {"y": 1E5}]}';
  const more = `,${odd},"labels":["x"],"comments":[{"id":1,"n":1.0},{"id":2}]`;
  const { tracker, save, text } = projectWith(`${lineOf('n-1', more)}\n`);
  const id = 'n-1' as TaskId;

  await tracker.edit(id, { title: 't' });
  await tracker.note(id, 'seen');
  await save();

  expect(text()).toContain(`${odd},"labels":["x"],"comments":[{"id":1,"n":1.0},{"id":2},{"id":3,`);
  expect(text()).toMatch(
    /^\{"id":"n-1","title":"t","created_at":"2026-01-01T00:00:00Z","updated_at"/,
  );
});

test('a line of any JSON keeps what is not changed, and says what is', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (more, value) => {
      const issue = { ...more, ...JSON.parse(lineOf('n-1')) };
      const before = JSON.stringify(issue, null, 1);
      const after = { ...issueOf(before), title: 'new', more: value };

      const written = JSON.parse(issueLine(after, before));

      const nulls = Object.entries(issue).filter(([key, each]) => each === null && key !== 'more');
      expect(issueOf(JSON.stringify(written))).toEqual(issueOf(JSON.stringify(after)));
      expect(written).toMatchObject(Object.fromEntries(nulls));
    }),
    { numRuns: 300 },
  );
});

test('a line without times is taken, and has them with its next change', async () => {
  const before = '{"id":"n-1","title":"by hand"}\n';
  const { tracker, save, text } = projectWith(before);
  const id = 'n-1' as TaskId;
  const began = Date.now() - 1_000;

  const [task] = await tracker.list();
  await save();
  const unchanged = text();
  await tracker.edit(id, { priority: 1 });
  await save();

  expect(Date.parse(task?.createdAt ?? '')).toBeGreaterThan(began);
  expect(task?.updatedAt).toBe(task?.createdAt);
  expect(unchanged).toBe(before);
  expect(JSON.parse(text())).toMatchObject({ created_at: task?.createdAt, priority: 1 });
});

test('refused lines are named with their fields, the first ten of them, and the others are taken', async () => {
  const refused = [
    '{"title":"no id"}',
    lineOf('n-2').replace('"title":"n-2",', ''),
    lineOf('n-3', ',"priority":"high"'),
    lineOf('n-4', ',"labels":"x"'),
    lineOf('n-5', ',"dependencies":[{"type":"blocks"}]'),
    '{"id":"n-6"',
    '[]',
    ...Array.from({ length: 5 }, () => '{"id":"x"}'),
  ];
  const before = [lineOf('a-1'), ...refused, lineOf('z-1')].join('\n');
  const { file, ledger, tracker, save, text } = projectWith(before);

  expect((await tracker.list()).map(({ id }) => id)).toEqual(['a-1', 'z-1']);
  const problem = (await ledger.exchange.problem()) ?? '';
  expect(problem.split('; ')).toEqual([
    '.beads/issues.jsonl line 2 cannot be read: id is missing',
    'line 3: title is missing',
    'line 4: priority is not a number',
    'line 5: labels is not a list',
    'line 6: dependencies.0.depends_on_id is missing',
    expect.stringContaining('line 7: it is not JSON: '),
    'line 8: it is not an object',
    ...[9, 10, 11].map(
      (line) => `line ${line}: id is not an issue id, such as bd-a1, title is missing`,
    ),
    'and 2 more',
  ]);
  await tracker.claim('a-1' as TaskId);
  await save();
  expect(text()).toBe(before);

  // As a server that runs takes it.
  writeFileSync(file, [lineOf('a-1'), lineOf('b-1'), '{"id":"n-6"'].join('\n'));
  expect((await tracker.list()).map(({ id }) => id)).toEqual(['a-1', 'b-1', 'z-1']);
  writeFileSync(file, [lineOf('a-1'), lineOf('b-1')].join('\n'));
  expect((await tracker.list()).map(({ id }) => id)).toEqual(['a-1', 'b-1']);
});

test.each([
  [
    'u-1 is on line 1 too',
    [
      '{"id":"u-1","title":"t","status":"open","updated_at":"2026-01-01T00:00:00Z"}',
      '{"id":"u-1","title":"t","status":"closed","updated_at":"2026-01-02T00:00:00Z"}',
    ],
  ],
  ['a conflict marker of git', [lineOf('u-1'), '<<<<<<< HEAD', lineOf('u-2')]],
])('at the first start, a file waits that says: %s', async (problem, lines) => {
  const { file, ledger, tracker } = projectWith(lines.join('\n'));

  expect(await tracker.list()).toEqual([]);
  expect(await ledger.exchange.problem()).toBe(
    `.beads/issues.jsonl line 2 cannot be read: ${problem}`,
  );
  writeFileSync(file, lines[0] ?? '');
  expect(await tracker.list()).toHaveLength(1);
});

test('the example of the guide is imported', async () => {
  const guide = readFileSync(join(import.meta.dirname, '../../../docs/guides/trackers.md'), 'utf8');
  const example = /```jsonl\n([^`]+)```/.exec(guide)?.[1] ?? '';
  const { ledger, tracker } = projectWith(example);

  expect(await tracker.list()).toMatchObject([
    { id: 'shop-1', status: 'open', priority: 2, ready: true },
    { id: 'shop-2', priority: 1, labels: ['role:tester'], unmet: ['shop-1'], ready: false },
  ]);
  expect(await ledger.exchange.problem()).toBeNull();
});

test('a new task has the prefix that most of the last tasks have, and bd without any', async () => {
  const mixed = ['my-shop-a1', 'my-shop-b2.1', 'other-c3'].map((id) => lineOf(id)).join('\n');

  const { tracker } = projectWith(mixed);
  const first = await projectWith('').tracker.create(aTask());

  expect((await tracker.create(aTask())).id).toMatch(/^my-shop-[0-9a-z]{4}$/);
  expect(first.id).toMatch(/^bd-[0-9a-z]{4}$/);
});
