import { expect, test } from 'vitest';
import { renderProgressRows } from '../../../src/cli/graph/display.ts';
import { createProgress } from '../../../src/cli/graph/progress.ts';
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

test('the last words of a task that pauses are why, and for how long', () => {
  const progress = createProgress();
  const pausing = aTask({ status: 'started', phase: 'backing_off', attempt: 1 });
  progress.begin(pausing);
  const call = (data: object) =>
    progress.take({
      ...{ type: 'api_call_complete', task_id: pausing.task_id, attempt: 1, seq: 1 },
      ...{ timestamp: '2026-01-15T09:30:00.000Z', data: { ...data } },
    });

  const facts = { retry_after_ms: 42_000 };
  call({ ok: false, error: { code: 'model_failed', message: 'slow down', facts } });
  call({ ok: true });

  expect(progress.get(pausing.task_id)?.words).toBe(
    'slow down; the provider asks for a pause of 42.0 s',
  );
});

test('what an assistant says after a call does not continue its words before it', () => {
  const progress = createProgress();
  const task = aTask({ status: 'started', phase: 'thinking', attempt: 1 });
  progress.begin(task);
  const see = (type: string, data: object) =>
    progress.take({
      ...{ type, task_id: task.task_id, attempt: 1, seq: 1 },
      ...{ timestamp: '2026-01-15T09:30:00.000Z', data: { ...data } },
    });

  see('text_delta', { text: 'I begin.' });
  see('tool_start', { tool: 'Bash', arguments: '{"command":"make"}' });
  see('text_delta', { text: 'Made' });

  expect(progress.get(task.task_id)?.words).toBe('Made');
});

test('at 80 columns a row shows which task it is, and what its agent said', () => {
  const progress = createProgress();
  const title = 'Fix the login form of the shop';
  const task = aTask({ title, status: 'started', phase: 'thinking', attempt: 1 });
  progress.begin(task);
  const see = (type: string, data: object) =>
    progress.take({
      ...{ type, task_id: task.task_id, attempt: 1, seq: 1 },
      ...{ timestamp: '2026-01-15T09:30:00.000Z', data: { ...data } },
    });
  const table = (): string => {
    const shown = progress.get(task.task_id);
    const rows = shown === null ? [] : [shown];
    return terminalText(renderProgressRows(rows, progress, 0, 80), false);
  };

  see('log', { level: 'warn', message: 'no node_modules; to install it …' });
  expect(table()).toContain('no node_mod');
  see('api_call_start', { turn: 1 });
  expect(table()).not.toContain('no node_mod');
  see('text_delta', { text: 'I read the form.' });

  expect(table()).toMatch(/Fix the login form of t.* I read the form\.$/);
  for (const line of table().split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});
