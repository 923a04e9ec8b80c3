import { expect, test } from 'vitest';
import { takeWorkLines } from '../../../src/cli/graph/take-work.ts';
import { aTask } from '../output/a-task.ts';

test('the work of many tasks is merged with --all, in place of a long line', () => {
  const lines = (count: number) =>
    takeWorkLines(Array.from({ length: count }, (_, n) => aTask({ task_id: `bd-${n}a` })));

  expect(lines(2).at(-1)).toBe('  agent merge bd-0a bd-1a');
  expect(lines(100).slice(-3)).toEqual([
    '  and of 90 more: agent list shows them',
    'to take it, and all other complete work:',
    '  agent merge --all',
  ]);
});
