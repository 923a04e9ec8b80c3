import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/**
 * Benches are no tests: nothing is said about their figures, only that they still run and print
 * them.
 */
test.each([
  ['dispatch', 'execute to agent started / one commit'],
  ['turn', 'our own of it, without the tool, of 5 ms'],
  ['parallel', 'three agents on one repository / one alone'],
  ['sandbox', 'a command in the sandbox'],
  ['journal', 'journal of a turn'],
  ['ledger', 'page of 50 ready tasks'],
])('the bench %s runs', { timeout: 60_000 }, (name, row) => {
  const file = fileURLToPath(new URL(`../../bench/${name}.mjs`, import.meta.url));

  const { status, stdout, stderr } = spawnSync(process.execPath, [file], {
    env: { ...process.env, RUNS: '1', TASKS: '2000' },
    encoding: 'utf8',
  });

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain(row);
});
