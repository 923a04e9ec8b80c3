import { expect, test } from 'vitest';
import { guardLines } from '../../../src/cli/watch/watch-commands.ts';

const text = (guard: string, value: boolean, inputs: Record<string, unknown>) =>
  guardLines([{ guard, value, inputs }])
    .map((line) => line.join(''))
    .join('\n');

test.each([
  ['heldByNobodyElse', { holder: 'ann' }, 'nobody else holds it: ann holds it'],
  [
    'projectCanBeUsed',
    { path: '/p', problem: 'cannot be worked on: it is sparse', remedy: 'run x' },
    'agents can work in the project: it cannot be worked on: it is sparse; run x',
  ],
  ['modelCanBeCalled', { missing_credential: 'X_KEY' }, 'a model is set up: X_KEY is not set'],
  ['modelCanBeCalled', { missing_credential: 'X', problem: 'log in' }, 'a model is set up: log in'],
  ['queueHasRoom', { waiting: 10_000, limit: 10_000 }, 'the queue has room: 10,000 of 10,000 wait'],
  [
    'slotIsFree',
    { running: 0, waiting: 2, cap: 3, paused: 'the disk is full' },
    'a slot is free: the disk is full',
  ],
  [
    'slotIsFree',
    {
      running: 1,
      waiting: 2,
      cap: 3,
      paused: null,
      role: 'engineer',
      role_running: 1,
      role_cap: 1,
    },
    'a slot is free: 1 of 3 are in use; of the role engineer: 1 of 1',
  ],
  [
    'hasAttemptsLeft',
    { retries_left: 0, retryable: true },
    'its failure may be tried again: retries left: 0',
  ],
  ['ofANewerServer', { x: 1 }, 'ofANewerServer: {"x":1}'],
])('a refusing %s with %j says what is missing', (guard, inputs, expected) => {
  expect(text(guard, false, inputs)).toBe(`  no   ${expected}`);
});

test('an obstacle of a workflow is a "no" while it is there', () => {
  expect([
    text('hasOpenChoices', true, { open: ['strategist', 'designer'] }),
    text('hasOpenChoices', false, { open: [] }),
    text('hasNoSteps', true, { steps: [] }),
    text('hasNoSteps', false, { steps: ['build', 'test'] }),
  ]).toEqual([
    '  no   its optional steps are decided: strategist, designer',
    '  yes  its optional steps are decided',
    '  no   the phase has steps to do',
    '  yes  the phase has steps to do: build, test',
  ]);
});

test('retries left say nothing about a task that has not failed', () => {
  expect(text('hasAttemptsLeft', false, { retries_left: 2, retryable: null })).toBe('');
});
