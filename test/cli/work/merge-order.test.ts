import { expect, test } from 'vitest';
import { takeWorkLines } from '../../../src/cli/graph/take-work.ts';
import { stateWords, workWords } from '../../../src/cli/words/state-words.ts';
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

test('work that goes to the forge is not offered for a merge here', () => {
  const [one, other] = ['bd-1a', 'bd-2b'].map((task_id) =>
    aTask({ task_id, status: 'complete', phase: 'complete', attempt: 1 }),
  ) as [ReturnType<typeof aTask>, ReturnType<typeof aTask>];
  const pull_request = { number: 4, state: 'open', round: 0 } as const;
  const atForge = ['', 'the work of 1 task goes to the forge; to see how it stands:', '  agent pr'];

  expect(takeWorkLines([one], () => true)).toEqual(atForge);
  const both = takeWorkLines([{ ...one, pull_request }, other]);
  expect(both.slice(-3)).toEqual(atForge);
  expect(both).toContain('  agent merge bd-2b');
});

test('work that will conflict is named by the list and at the end of a run, with the files', () => {
  const { files, insertions, deletions } = { files: 1, insertions: 1, deletions: 0 };
  const task = aTask({
    ...{ task_id: 'bd-1a', status: 'complete', phase: 'complete', attempt: 1 },
    work: {
      ...{ branch: 'agent/bd-1a/1', commit: 'c', files, insertions, deletions },
      conflicts_with: [{ task_id: 'bd-2b', paths: ['a.js'] }],
    },
  });

  expect(stateWords(task, 0)).toBe('complete (will conflict)');
  expect(workWords(task.work)).toBe('its work is not merged, and will conflict with bd-2b in a.js');
  expect(takeWorkLines([task])).toContain(
    'bd-1a will conflict with bd-2b in a.js: agent update goes on after that',
  );
});
