import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { evalsFolder, readSuite } from '../../scripts/evals/suite.mjs';
import { isLong } from '../support/long.ts';
import { temporaryFolder } from '../support/temporary.ts';

const suite = readSuite();
const names = suite.map(({ name }) => name).filter((_, nth) => isLong || nth % 4 === 0);

/** Runs a checker on a folder that holds these parts of the eval, one over the other. */
const check = (name: string, parts: readonly string[], summary: string) => {
  const work = temporaryFolder();
  const said = join(temporaryFolder(), 'summary.md');
  for (const part of parts.map((each) => join(evalsFolder, name, each)))
    if (existsSync(part)) cpSync(part, work, { recursive: true });
  writeFileSync(said, summary);
  const { status, stdout } = spawnSync(
    process.execPath,
    [join(evalsFolder, name, 'check.mjs'), work, said],
    {
      encoding: 'utf8',
    },
  );
  return { status, last: stdout.trim().split('\n').at(-1) };
};

test('there are at least twelve evals, of every kind', () => {
  expect(suite.length).toBeGreaterThanOrEqual(12);
  expect(new Set(suite.map(({ task }) => task.kind))).toEqual(
    new Set(['fix', 'feature', 'test', 'review', 'refactor', 'docs']),
  );
});

test('no eval runs without limits', () => {
  for (const { task } of suite) {
    expect(task.max_turns).toBeLessThanOrEqual(50);
    expect(task.max_tokens_total).toBeLessThanOrEqual(500_000);
    expect(task.timeout_seconds).toBeLessThanOrEqual(600);
  }
});

test.each(names)(
  'the checker of %s fails on the unchanged project',
  { timeout: 60_000 },
  (name) => {
    const { status, last } = check(
      name,
      ['project', 'change'],
      'I looked at everything, and it is fine.',
    );

    expect(status).toBe(1);
    expect(last).toMatch(/^(not )?ok - /);
  },
);

test.each(names)(
  'the checker of %s passes with the reference solution',
  { timeout: 60_000 },
  (name) => {
    const summary = readFileSync(join(evalsFolder, name, 'reference', 'summary.md'), 'utf8');

    const { status, last } = check(name, ['project', 'change', 'reference/files'], summary);

    expect(last).toMatch(/^all \d+ checks hold$/);
    expect(status).toBe(0);
  },
);
