import { expect, test } from 'vitest';
import { createProgress } from '../../../src/cli/graph/progress.ts';
import { renderProgressRows } from '../../../src/cli/graph/render-progress.ts';
import { terminalText } from '../../../src/cli/output/styled.ts';
import { aTask } from '../output/a-task.ts';

const over = { status: 'complete', phase: 'complete', attempt: 1 } as const;

test.each([
  [true, 'The sum is mended.'],
  [false, 'I look at it.'],
])('the last words of a task whose last turn was silent (%s) are: %s', (isSilentTurn, words) => {
  const task = {
    ...{ isFresh: false, isPending: false, hasEnded: true, turn: '2/50', seenAt: 0 },
    ...{ words: '', said: 'I look at it.', isSilentTurn, usage: new Map() },
    view: aTask({ ...over, result: 'The sum is mended.' }),
  };

  const table = terminalText(renderProgressRows([task], createProgress(), 0, 100), false);

  expect(table.split('\n')[1]).toMatch(new RegExp(`${words}$`));
});
