import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { retriedTests, slowestFiles } from '../../scripts/summary-reporter.ts';
import { temporaryFolder } from '../support/temporary.ts';

const root = join(import.meta.dirname, '..', '..');

test('the ten slowest files are named with their time and their share of all', () => {
  const files = Array.from({ length: 12 }, (_, n) => ({
    name: `test/${n}.test.ts`,
    ms: n === 5 ? 12_000 : 1_000,
  }));

  const lines = slowestFiles(files).split('\n');

  expect(lines).toHaveLength(11);
  expect(lines[0]).toBe('slowest files, of 23.0 s in 12 files:');
  expect(lines[1]).toBe('  12.0 s  52%  test/5.test.ts');
  expect(lines[2]).toBe('   1.0 s   4%  test/0.test.ts');
});

test('a run without files has no slow ones', () => {
  expect(slowestFiles([])).toBe('slowest files, of 0.0 s in 0 files:');
});

test('a test that needed a second try is named', () => {
  expect(retriedTests(['a race', 'another'])).toBe(
    'passed only at the second try: a race\npassed only at the second try: another\n',
  );
});

test('each skipped test is named with its reason, however it was skipped, and the last line counts them', async () => {
  const folder = temporaryFolder();
  writeFileSync(
    join(folder, 'some.test.ts'),
    `import { describeUnless, testUnless } from ${JSON.stringify(join(root, 'test/support/needs.ts'))};
     const fails = () => { throw new Error('it ran'); };
     testUnless(null)('runs', () => {});
     testUnless('no loom')('one', fails);
     testUnless('no loom')('with a timeout', fails, 1_000);
     testUnless('no loom')('with options', { timeout: 1_000 }, fails);
     testUnless('no loom').each([1, 2])('each of %i', fails);
     testUnless('no loom').for([3])('for %i', { timeout: 1_000 }, fails);
     describeUnless('no yarn')('all', () => {
       beforeAll(fails);
       test('in a group', fails);
       describe('inner', () => test('in a group of it', fails));
       testUnless('no loom')('for a reason of its own', fails);
     });
     describeUnless('no yarn').each(['red'])('all of %s', () => void test('in each', fails));
     test('while it runs', ({ skip }) => skip('no wool'));`,
  );

  const { stdout, exitCode } = await execa(
    join(root, 'node_modules/.bin/vitest'),
    ['run', '--globals', `--root=${folder}`, `--reporter=${root}/scripts/summary-reporter.ts`],
    { cwd: folder, env: { CI: '1' }, reject: false },
  );

  const lines = stdout.split('\n');
  expect(lines.filter((line) => line.startsWith('skipped: '))).toEqual([
    'skipped: one: no loom',
    'skipped: with a timeout: no loom',
    'skipped: with options: no loom',
    'skipped: each of 1: no loom',
    'skipped: each of 2: no loom',
    'skipped: for 3: no loom',
    'skipped: all > in a group: no yarn',
    'skipped: all > inner > in a group of it: no yarn',
    'skipped: all > for a reason of its own: no loom',
    'skipped: all of red > in each: no yarn',
    'skipped: while it runs: no wool',
  ]);
  expect([lines.at(-1), exitCode]).toEqual(['1 passed, 0 failed, 11 skipped', 0]);
});
