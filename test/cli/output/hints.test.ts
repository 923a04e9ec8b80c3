import { expect, test } from 'vitest';
import { hintFor } from '../../../src/cli/output/report-error.ts';

test('the hint for a running task says how to watch or stop it', () => {
  expect(hintFor('already_running', { task_id: 'bd-a1', attempt: 2 })).toBe(
    "watch it with 'agent logs -f bd-a1' or stop it with 'agent cancel bd-a1'",
  );
});

test('the hint for a task at work or complete says what makes it ready', () => {
  const facts = { task_id: 'bd-a1', state: 'started (working)', allowed: ['close', 'cancel'] };

  expect(hintFor('event_not_allowed', { ...facts, event: 'retry' })).toBe(
    "'agent cancel bd-a1' stops it",
  );
  expect(hintFor('event_not_allowed', { ...facts, event: 'respond' })).toBeNull();
  expect(
    hintFor('event_not_allowed', {
      ...facts,
      event: 'retry',
      state: 'complete',
      allowed: ['reopen'],
    }),
  ).toBe("'agent reopen bd-a1' puts it back in the queue");
});

test.each([
  ['task_not_found', { task_id: 'bd-a1' }, "'agent list --all' shows the tasks"],
  [
    'stale_attempt',
    { task_id: 'bd-a1', attempt: 1, live_attempt: 2 },
    "'agent show bd-a1' shows what attempt 2 asks",
  ],
])('the hint for %s %j says what to do', (code, facts, hint) => {
  expect(hintFor(code, facts)).toBe(hint);
});

test('an error without a hint has none', () => {
  expect(hintFor('role_unknown', { role: 'janitor' })).toBeNull();
  expect(hintFor('toString', {})).toBeNull();
});
