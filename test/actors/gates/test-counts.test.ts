import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readTestCounts } from '../../../src/actors/gates/test-counts.ts';

/** Made by vitest 4.1, node 20, and by scripts/gate-reports.mjs with the tools of versions.json. */
const report = (name: string): string =>
  readFileSync(join(import.meta.dirname, 'reports', name), 'utf8');

test.each([
  ['vitest.json', { passed: 2, failed: 1, skipped: 1, format: 'jest' }],
  ['vitest-junit.xml', { passed: 2, failed: 1, skipped: 1, format: 'junit' }],
  ['vitest-flat.tap', { passed: 2, failed: 1, skipped: 1, format: 'tap' }],
  ['node.tap', { passed: 2, failed: 2, skipped: 2, format: 'tap' }],
  ['node-junit.xml', { passed: 2, failed: 1, skipped: 2, format: 'junit' }],
  ['pytest-junit.xml', { passed: 3, failed: 2, skipped: 2, format: 'junit' }],
  ['pytest-uncollected.xml', { passed: 0, failed: 1, skipped: 0, format: 'junit' }],
  ['go-test.json', { passed: 3, failed: 2, skipped: 1, format: 'go' }],
  ['go-test-passed.json', { passed: 1, failed: 0, skipped: 0, format: 'go' }],
  ['go-test-broken-build.json', { passed: 1, failed: 1, skipped: 0, format: 'go' }],
  ['go-test-exits.json', { passed: 1, failed: 1, skipped: 0, format: 'go' }],
])('counts the tests of %s', (name, counts) => {
  expect(readTestCounts(report(name))).toEqual(counts);
});

test('a report of go that is cut has failed tests, wherever it is cut', () => {
  const lines = report('go-test-passed.json').trimEnd().split('\n');

  for (let kept = 1; kept < lines.length; kept += 1)
    expect(readTestCounts(lines.slice(0, kept).join('\n'))).toMatchObject({ failed: 1 });
});

test('lines of the compiler between those of go test -json are no tests', () => {
  const said = `# example.com/calc/broken\nbroken_test.go:6:6: number declared\n`;

  expect(readTestCounts(`${said}${report('go-test-broken-build.json')}`)).toEqual(
    readTestCounts(report('go-test-broken-build.json')),
  );
});

test('the summary of pytest-json-report is counted', () => {
  const summary = { passed: 3, xfailed: 1, error: 1, total: 5, collected: 5 };

  expect(readTestCounts(JSON.stringify({ summary }))).toEqual({
    ...{ passed: 3, failed: 1, skipped: 1, format: 'pytest' },
  });
});

test('a file that jest could not load counts as failed', () => {
  expect(
    readTestCounts('{"numTotalTests":1,"numPassedTests":1,"numFailedTests":0,"success":false}'),
  ).toMatchObject({ passed: 1, failed: 1 });
});

test('the sums that a suite claims do not count, its cases do', () => {
  const text =
    '<testsuite tests="500" failures="0"><testcase name="a"><failure/></testcase></testsuite>';

  expect(readTestCounts(text)).toMatchObject({ passed: 0, failed: 1 });
});

test.each([
  ['nothing', '', 'is empty'],
  ['a log', 'PASS all 12 tests', 'is no report of junit, TAP'],
  ['TAP without a plan', 'TAP version 13\nok 1 - a\n', 'has no plan'],
  ['TAP that plans more', 'TAP version 13\n1..3\nok 1 - a\n', 'plans 3 tests and has 1'],
  ['TAP that bailed out', 'TAP version 13\nok 1\nBail out! no disk\n', 'bailed out'],
  ['other JSON', '{"tests":12}', 'is no report of jest'],
  ['other XML', '<coverage/>', 'is no report of tests: it begins with <coverage>'],
  ['an entity bomb', '<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuite/>', 'declares a document type'],
  ['a broken line of go', '{"Action":"start","Package":"a"}\n{"Action"', 'is broken JSON'],
  [
    'passed tests that are no count',
    '{"numTotalTests":1,"numPassedTests":"many"}',
    'has no count in numPassedTests',
  ],
])('refuses %s with a sentence', (_, text, says) => {
  expect(() => readTestCounts(text)).toThrow(says);
});
