import { afterAll, beforeAll, expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

const ends: (() => unknown)[] = [];
const project = openProject(undefined, { atEnd: (end) => void ends.push(end) });
const ids: string[] = [];

beforeAll(async () => {
  for (const [title, ...flags] of [
    ['oldest', '--priority', '0'],
    ['middle', '--label', 'red'],
    ['newest', '--role', 'tester', '--label', 'red'],
  ])
    ids.push((await project.agent('create', title as string, ...flags)).out.trim());
});
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

const idsIn = (text: string): string[] => text.match(/^\S+-\S+/gm) ?? [];

test('the newest task comes last, below the header', async () => {
  const { out } = await project.agent('list');

  expect(out.split('\n')[0]).toMatch(/^ID +STATUS +ROLE +TRY +AGE +COST +TITLE$/);
  expect(idsIn(out)).toEqual(ids);
});

test.each([
  [
    ['--limit', '2'],
    [1, 2],
  ],
  [
    ['--label', 'red'],
    [1, 2],
  ],
  [['--label', 'red', '--limit', '1'], [2]],
  [['--role', 'tester'], [2]],
  [['--role', 'engineer'], []],
  [['--sort', 'priority', '--limit', '1'], [0]],
  [
    ['--sort', 'title'],
    [0 + 1, 2, 0],
  ],
])('list %j', async (flags, which) => {
  const { out, code } = await project.agent('list', ...(flags as string[]));

  expect(code).toBe(0);
  expect(idsIn(out)).toEqual((which as number[]).map((at) => ids[at]));
});

test.each([
  [['--limit', '0'], 'whole number from 1'],
  [['--limit', '1.5'], 'whole number from 1'],
  [['--limit', '1', '--all'], 'contradict'],
])('list %j is refused', async (flags, message) => {
  const { err, code } = await project.agent('list', ...(flags as string[]));

  expect(code).toBe(2);
  expect(err).toContain(message);
});

test('a filter without a match prints the header and says so', async () => {
  const { out, err } = await project.agent('list', '--status', 'failed', '--label', 'blue');

  expect(out).toMatch(/^ID .*TITLE\n$/);
  expect(err).toContain('no failed tasks with the label blue');
});

test('a terminal gets the newest 50 and the number of the others', async () => {
  for (let n = 0; n < 49; n += 1) await project.agent('create', `more ${n}`);

  const shown = await project.onTerminal('list');

  expect(idsIn(shown.out)).toHaveLength(50);
  expect(shown.err).toContain('2 older; see: agent list --all');
  expect(idsIn((await project.onTerminal('list', '--all')).out)).toHaveLength(52);
  expect(idsIn((await project.agent('list')).out)).toHaveLength(52);
  for (const line of shown.out.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});
