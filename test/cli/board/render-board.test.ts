import { expect, test } from 'vitest';
import type { TaskView } from '../../../src/actors/journal/task-view.ts';
import {
  type Board,
  type BoardTask,
  renderBoard,
  sectionOf,
} from '../../../src/cli/board/render-board.ts';
import { terminalText } from '../../../src/cli/output/styled.ts';
import { textWidth } from '../../../src/cli/output/wrap.ts';
import { aTask } from '../output/a-task.ts';

const at = '2026-11-20T10:00:00.000Z';
const now = Date.parse(at) + 65_000;

const view = (over: Partial<TaskView>): TaskView =>
  aTask({ task_id: 'bd-a1', title: 'a title', created_at: at, updated_at: at, ...over });

const place = (over: Partial<TaskView>, work?: TaskView['work'], words = ''): BoardTask => {
  const shown = view(over);
  return {
    task: {
      view: shown,
      isFresh: true,
      isPending: true,
      hasEnded: false,
      words,
      said: '',
      isSilentTurn: true,
      turn: '3/50',
      seenAt: Date.parse(at),
      usage: new Map(),
    },
    work,
    section: sectionOf(shown, work),
  };
};

const boardOf = (tasks: readonly BoardTask[], unread = 0): Board => ({
  tasks,
  unread,
  find: (id) => tasks.find(({ task }) => task.view.task_id === id) ?? null,
});

const shownOf = (board: Board, columns: number, rows: number, chosen: string | null = null) =>
  renderBoard(board, chosen, now, { columns, rows }).map((line) => terminalText(line, false));

const work = { branch: 'agent/bd-r1', commit: 'c0ffee', files: 2, insertions: 5, deletions: 1 };

test('each task is under its fact, with role, attempt, turn, cost, age and why', () => {
  const usage = { ...view({}).usage, cost_usd: 0.42 };
  const board = boardOf([
    place({
      task_id: 'bd-n1',
      status: 'failed',
      error: { code: 'x', message: 'no luck', facts: {} },
    }),
    place(
      { task_id: 'bd-w1', status: 'started', phase: 'acting', role: 'engineer', attempt: 2, usage },
      undefined,
      'bash npm test',
    ),
    place({ task_id: 'bd-r1', status: 'complete', phase: 'complete' }, work),
    place({ task_id: 'bd-s1', phase: 'waiting_for_slot' }),
    place({
      task_id: 'bd-d1',
      phase: 'waiting_for_dependencies',
      unmet_dependencies: ['bd-n1', 'bd-w1', 'bd-r1'],
    }),
    place({ task_id: 'bd-m1', status: 'complete' }, { ...work, merged_at: at }),
  ]);

  expect(shownOf(board, 100, 30)).toEqual([
    'Needs you 1 · Working 1 · To review 1 · Queued 1 · Blocked 1 · Done 1',
    'Needs you 1',
    '  bd-n1    1m  a title',
    '    no luck',
    'Working 1',
    '  bd-w1    1m  a title',
    '    engineer · attempt 2 of 2 · turn 3/50 · $0.42 · working: bash npm test',
    'To review 1',
    '  bd-r1    1m  a title',
    '    not merged: 2 files, +5 -1',
    'Queued 1',
    '  bd-s1    1m  a title',
    '    needs a slot',
    'Blocked 1',
    '  bd-d1    1m  a title',
    '    waits for bd-n1 (needs you) and bd-w1 (working) and 1 more',
    'Done 1',
    '  bd-m1    1m  a title',
    '    merged: 2 files, +5 -1',
    'j/k move · Enter show · ? help · q quit',
  ]);
});

test('a task that waits for a cancelled one says so', () => {
  const board = boardOf([
    place({ task_id: 'bd-c1', status: 'cancelled' }),
    place({
      task_id: 'bd-d1',
      phase: 'waiting_for_dependencies',
      unmet_dependencies: ['bd-c1'],
    }),
  ]);

  expect(shownOf(board, 100, 30)).toContain('    waits for bd-c1 (cancelled)');
});

test('a task of which no frame has come says which call it makes', () => {
  const busy = { status: 'started', phase: 'acting', activity: 'bash npm test' } as const;

  expect(shownOf(boardOf([place(busy)]), 100, 30)).toContain(
    '    turn 3/50 · working: bash npm test',
  );
});

test('tasks that fit are shown around the chosen one, and the rest of 2000 are counted', () => {
  const tasks = Array.from({ length: 2_000 }, (_, n) => place({ task_id: `bd-n${n}` }));
  const lines = shownOf(boardOf(tasks, 30), 80, 24, 'bd-n1000');

  expect(lines.length).toBeLessThanOrEqual(24);
  expect(lines.filter((line) => line.startsWith('> '))).toEqual([
    expect.stringContaining('bd-n1000'),
  ]);
  const shown = lines.filter((line) => /^[> ] bd-n/.test(line)).length;
  const [, above, below] = /^(\d+) above, (\d+) below/.exec(lines.at(-1) ?? '') ?? [];
  expect(Number(above) + Number(below) + shown).toBe(2_030);
});

const hostile = `x\u001b]52;c;ZXZpbA==\u0007\u009b31m\u202e\u2066\r\n\t${'漢'.repeat(300)}`;

test.each([
  [80, 24],
  [40, 10],
  [20, 4],
])('hostile texts stay within %d columns and %d rows', (columns, rows) => {
  const board = boardOf([
    place({ task_id: 'bd-x1', title: hostile, status: hostile, phase: hostile }),
    place({ task_id: hostile, title: hostile, status: 'failed' }),
  ]);

  const lines = shownOf(board, columns, rows, 'bd-x1');

  expect(lines.length).toBeLessThanOrEqual(rows);
  for (const line of lines) {
    expect(textWidth(line)).toBeLessThanOrEqual(columns);
    expect(line).not.toMatch(/\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u);
  }
});

test('a project without tasks says what to do', () => {
  expect(shownOf(boardOf([]), 80, 24)[0]).toContain('agent create');
});
