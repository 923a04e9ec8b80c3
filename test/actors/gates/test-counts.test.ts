import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readTestCounts } from '../../../src/actors/gates/test-counts.ts';

/** Made by vitest 4.1, node 20 and pytest 9. */
const report = (name: string): string =>
  readFileSync(join(import.meta.dirname, 'reports', name), 'utf8');

test.each([
  ['vitest.json', { passed: 2, failed: 1, skipped: 1, format: 'jest' }],
  ['vitest-junit.xml', { passed: 2, failed: 1, skipped: 1, format: 'junit' }],
  ['vitest-flat.tap', { passed: 2, failed: 1, skipped: 1, format: 'tap' }],
  ['node.tap', { passed: 2, failed: 2, skipped: 2, format: 'tap' }],
  ['node-junit.xml', { passed: 2, failed: 1, skipped: 2, format: 'junit' }],
  ['pytest-junit.xml', { passed: 1, failed: 1, skipped: 2, format: 'junit' }],
])('counts the tests of %s', (name, counts) => {
  expect(readTestCounts(report(name))).toEqual(counts);
});

const goLine = (Action: string, Test?: string): string =>
  JSON.stringify({ Action, Package: 'example.com/sum', ...(Test === undefined ? {} : { Test }) });

test('counts the last action of each test of go test -json', () => {
  const lines = [
    goLine('start'),
    goLine('run', 'TestA'),
    goLine('pass', 'TestA'),
    goLine('run', 'TestB'),
    goLine('fail', 'TestB'),
    goLine('skip', 'TestC'),
    goLine('fail'),
  ];

  expect(readTestCounts(lines.join('\n'))).toEqual({
    ...{ passed: 1, failed: 1, skipped: 1, format: 'go' },
  });
});

test('a package of go that does not compile counts as failed', () => {
  expect(readTestCounts(`${goLine('start')}\n${goLine('fail')}\n`)).toMatchObject({
    ...{ passed: 0, failed: 1 },
  });
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
  ['a broken line of go', `${goLine('start')}\n{"Action"`, 'is broken JSON'],
  [
    'passed tests that are no count',
    '{"numTotalTests":1,"numPassedTests":"many"}',
    'has no count in numPassedTests',
  ],
])('refuses %s with a sentence', (_, text, says) => {
  expect(() => readTestCounts(text)).toThrow(says);
});
