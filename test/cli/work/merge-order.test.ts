import { expect, test } from 'vitest';
import type { TaskView } from '../../../src/actors/journal/task-view.ts';
import { CallError } from '../../../src/cli/client/client.ts';
import { takeWorkLines } from '../../../src/cli/graph/take-work.ts';
import { inDependencyOrder } from '../../../src/cli/work/merge-command.ts';
import { aTask } from '../output/a-task.ts';

/** Tasks by id, with what they depend on. */
const readFrom = (edges: Readonly<Record<string, readonly string[]>>) => async (id: string) => {
  const dependencies = edges[id];
  if (dependencies === undefined) throw new CallError('task_not_found', `no ${id}`, {});
  return { task_id: id, dependencies } as unknown as TaskView;
};
const idsOf = (tasks: readonly TaskView[]) => tasks.map(({ task_id }) => task_id);

test('tasks come after what they depend on, through tasks that are not given and past ones that are gone', async () => {
  const read = readFrom({
    a: ['gone'],
    b: ['a'],
    c: ['b', 'gone'],
    round: ['trip'],
    trip: ['round'],
  });

  expect(idsOf(await inDependencyOrder(['c', 'a'], read))).toEqual(['a', 'c']);
  expect(idsOf(await inDependencyOrder(['c', 'c'], read))).toEqual(['c']);
  expect(idsOf(await inDependencyOrder(['round', 'trip'], read))).toEqual(['trip', 'round']);
  await expect(inDependencyOrder(['c', 'gone'], read)).rejects.toThrow('no gone');
});

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
