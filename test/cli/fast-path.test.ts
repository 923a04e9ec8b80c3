import { expect, onTestFinished, test, vi } from 'vitest';
import { parseLook } from '../../src/cli/fast-path.ts';
import { openProject } from '../support/cli.ts';

test.each([
  [['list'], { command: 'list', args: { json: false } }],
  [['list', '--json'], { command: 'list', args: { json: true } }],
  [['list', '--status', 'queued'], { command: 'list', args: { json: false, status: 'queued' } }],
  [
    ['list', '--json', '--status', 'queued', '--limit', '50', '--label', 'x'],
    { command: 'list', args: { json: true, status: 'queued', limit: 50, label: 'x' } },
  ],
  [['list', '--all'], { command: 'list', args: { json: false, all: true } }],
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
  [['list', '--limit', '0']],
  [['list', '--limit', 'x']],
  [['list', '--limit', '1', '--limit', '2']],
  [['list', '--sort', 'cost']],
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
    ['list', '--limit', '1'],
    ['list', '--limit', '1', '--all'],
    ['list', '--label', 'nonsense'],
    ['show', id],
    ['show', two.out.trim(), '--json'],
    ['show', 'bd-none'],
    ['show', 'bd-none', '--json'],
    ['show', 'no id at all'],
  ];

  expect((await project.agent('server', 'start')).code).toBe(0);
  // The list shows ages.
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  for (const each of words)
    expect(await project.agent(...each)).toEqual(await project.agent(...each, '--start'));
});
