import { expect, test } from 'vitest';
import { hintFor } from '../../../src/cli/output/hints.ts';

test('the hint for a running task says how to watch or stop it', () => {
  expect(hintFor('already_running', { task_id: 'bd-a1', attempt: 2 })).toBe(
    "watch it with 'agent logs -f bd-a1' or stop it with 'agent cancel bd-a1'",
  );
});

test('an error without a hint has none', () => {
  expect(hintFor('task_not_found', { task_id: 'bd-a1' })).toBeNull();
  expect(hintFor('toString', {})).toBeNull();
});
