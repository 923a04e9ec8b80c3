import { expect, test } from 'vitest';
import type { TaskView } from '../../../src/actors/journal/task-view.ts';
import { renderList } from '../../../src/cli/output/render/render-list.ts';
import { terminalText } from '../../../src/cli/output/styled.ts';
import { textWidth } from '../../../src/cli/output/wrap.ts';
import { aTask } from './a-task.ts';

const now = Date.parse('2026-11-22T12:00:00.000Z');
const usage = { ...aTask({}).usage, cost_usd: 1.234 };
const shown = (tasks: readonly TaskView[], width: number | null) =>
  terminalText(renderList(tasks, now, width), false);

test('a list has a header, also when it is empty', () => {
  expect(shown([], null)).toBe('ID  STATUS  ROLE  TRY  AGE  COST  TITLE');
});

test('the columns stand below each other', () => {
  const attempts = { attempt: 2, max_attempts: 3 };
  const tasks = [
    aTask({}),
    aTask({ task_id: 'bd-c3', ready: false, phase: 'waiting_for_dependencies' }),
    aTask({ status: 'started', phase: 'awaiting_input', role: 'engineer', ...attempts, usage }),
  ];

  expect(shown(tasks, null).split('\n')).toEqual([
    'ID       STATUS              ROLE      TRY  AGE  COST   TITLE',
    'bd-a1b2  queued (ready)      -         -    4m   -      Mend the sum',
    'bd-c3    queued (blocked)    -         -    4m   -      Mend the sum',
    'bd-a1b2  started (asks you)  engineer  2/3  4m   $1.23  Mend the sum',
  ]);
});

test.each([40, 80, 120])('no line is longer than %i columns', (width) => {
  const titles = [
    'x'.repeat(300),
    '\u6f22\u5b57'.repeat(80),
    '\ud83d\ude42'.repeat(80),
    'e\u0301'.repeat(200),
  ];

  const lines = shown(
    titles.map((title) => aTask({ title })),
    width,
  ).split('\n');

  for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width);
  expect(lines[1]?.endsWith('\u2026')).toBe(true);
});

test('on 80 columns 28 are left for the title, since no cost is known', () => {
  const done = { status: 'complete', phase: 'complete', role: 'engineer', attempt: 1 } as const;
  const work = { branch: 'b', commit: 'c', files: 1, insertions: 1, deletions: 0 };

  const lines = shown([aTask({ ...done, work, title: 'x'.repeat(100) })], 80).split('\n');

  expect(lines).toEqual([
    'ID       STATUS                 ROLE      TRY  AGE  TITLE',
    `bd-a1b2  complete (not merged)  engineer  1    4m   ${'x'.repeat(27)}…`,
  ]);
});

test('a narrow terminal keeps id, status and title, and as many of the others as fit', () => {
  const task = aTask({ status: 'started', phase: 'thinking', role: 'engineer', attempt: 1 });

  expect(shown([task], 60).split('\n')[0]).toBe(
    'ID       STATUS              ROLE      TRY  TITLE',
  );
  expect(shown([task], 40).split('\n')).toEqual([
    'ID       STATUS              TITLE',
    'bd-a1b2  started (thinking)  Mend the s…',
  ]);
});

test('a pipe gets the whole title', () => {
  const title = 'x'.repeat(500);

  expect(shown([aTask({ title })], null)).toContain(title);
});

test('a status has its colour, and only on request', () => {
  const text = renderList([aTask({ status: 'failed', phase: 'failed' })], now, null);

  expect(terminalText(text, true)).toContain('\u001b[31mfailed\u001b[0m');
  expect(terminalText(text, false)).not.toContain('\u001b');
});
