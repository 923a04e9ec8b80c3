import { expect, test } from 'vitest';
import { parseLook } from '../../src/cli/fast-path.ts';
import { openProject } from '../support/cli.ts';

test.each([
  [['list'], { command: 'list', json: false, status: undefined }],
  [['list', '--json'], { command: 'list', json: true, status: undefined }],
  [['list', '--status', 'queued'], { command: 'list', json: false, status: 'queued' }],
  [['list', '--json', '--status', 'queued'], { command: 'list', json: true, status: 'queued' }],
  [['show', 'bd-a1'], { command: 'show', json: false, taskId: 'bd-a1' }],
  [['show', '--json', 'bd-a1'], { command: 'show', json: true, taskId: 'bd-a1' }],
])('%j takes the fast path', (words, look) => {
  expect(parseLook(words)).toEqual(look);
});

test.each([
  [['list', '--help']],
  [['list', 'bd-a1']],
  [['list', '--status']],
  [['list', '--status', '--json', 'x']],
  [['list', '--status=queued']],
  [['list', '--project', '.']],
  [['show']],
  [['show', '-x']],
  [['show', 'bd-a1', 'bd-a2']],
  [['close', 'bd-a1']],
  [[]],
])('%j is left to the real parser', (words) => {
  expect(parseLook(words)).toBeNull();
});

test('both paths print the same bytes', async () => {
  const project = openProject();
  const [one, two] = [
    await project.agent('create', 'one'),
    await project.agent('create', 'two\nlines'),
  ];
  await project.agent('dep', 'add', two.out.trim(), one.out.trim());
  const id = one.out.trim();
  const words = [
    ['list'],
    ['list', '--json'],
    ['list', '--status', 'queued'],
    ['list', '--status', 'nonsense'],
    ['show', id],
    ['show', two.out.trim(), '--json'],
    ['show', 'bd-none'],
    ['show', 'bd-none', '--json'],
    ['show', 'no id at all'],
  ];

  expect((await project.agent('server', 'start')).code).toBe(0);
  for (const each of words)
    expect(await project.agent(...each)).toEqual(await project.agent(...each, '--start'));
});
