import { expect, test } from 'vitest';
import { resumeFrom } from '../../../src/actors/engine/attempts/task-state-work.ts';
import { charts } from '../../../src/actors/journal/chart-versions.ts';

const savedIn = (value: string) => ({
  id: 'bd-a1#1',
  taskId: 'bd-a1',
  version: charts.newest,
  pending: true,
  changedAt: 0,
  attempt: 1,
  revision: 1,
  owner: null,
  restores: 0,
  snapshot: JSON.stringify({ status: 'active', value, context: { deadlineAt: 1, limitAt: 2 } }),
});

test.each([
  ['flying', 'this server does not know the state flying of bd-a1#1'],
  ['failed', 'the agent bd-a1#1 had ended in the state failed'],
])('an agent that was saved as %s is not resumed, and the error says why', (value, message) => {
  expect(() => resumeFrom(savedIn(value), null, 0)).toThrow(message);
});

test('a pause of the model goes on with the deadline of the attempt', () => {
  expect(resumeFrom(savedIn('acting'), null, 0)).toMatchObject({
    resume: { at: 'acting', context: { deadlineAt: 1, limitAt: null } },
  });
});
