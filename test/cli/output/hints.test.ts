import { expect, test } from 'vitest';
import { hintFor } from '../../../src/cli/output/hints.ts';

test('the hint for a running task says how to watch or stop it', () => {
  expect(hintFor('already_running', { task_id: 'bd-a1', attempt: 2 })).toBe(
    "watch it with 'agent logs -f bd-a1' or stop it with 'agent cancel bd-a1'",
  );
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
