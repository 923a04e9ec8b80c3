import { expect, test } from 'vitest';
import { retriedTests, slowestFiles } from '../../scripts/summary-reporter.ts';

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
