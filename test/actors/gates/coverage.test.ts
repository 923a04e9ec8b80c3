import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readCoverage } from '../../../src/actors/gates/judge.ts';

/**
 * Made by vitest 4.1 with istanbul's reporters, and by scripts/gate-reports.mjs with the tools
 * of versions.json.
 */
const report = (name: string): string =>
  readFileSync(join(import.meta.dirname, 'reports', name), 'utf8');

test.each([
  ['istanbul-summary.json', { covered: 3, total: 6, unit: 'lines', format: 'istanbul' }],
  ['istanbul-final.json', { covered: 5, total: 8, unit: 'statements', format: 'istanbul' }],
  ['lcov.info', { covered: 3, total: 6, unit: 'lines', format: 'lcov' }],
  ['cobertura.xml', { covered: 3, total: 6, unit: 'lines', format: 'cobertura' }],
  ['pytest-coverage.xml', { covered: 5, total: 6, unit: 'lines', format: 'cobertura' }],
  ['pytest-coverage.json', { covered: 5, total: 6, unit: 'lines', format: 'pytest' }],
  ['pytest-coverage.lcov', { covered: 5, total: 6, unit: 'lines', format: 'lcov' }],
  // Two packages report the same blocks; one covers each.
  ['go-cover-set.out', { covered: 4, total: 5, unit: 'statements', format: 'go' }],
  ['go-cover-count.out', { covered: 4, total: 5, unit: 'statements', format: 'go' }],
  ['go-cover-atomic.out', { covered: 4, total: 5, unit: 'statements', format: 'go' }],
  ['c8-coverage-summary.json', { covered: 9, total: 17, unit: 'lines', format: 'istanbul' }],
  ['c8-coverage-final.json', { covered: 9, total: 17, unit: 'statements', format: 'istanbul' }],
  ['c8-lcov.info', { covered: 9, total: 17, unit: 'lines', format: 'lcov' }],
  ['c8-cobertura-coverage.xml', { covered: 9, total: 17, unit: 'lines', format: 'cobertura' }],
  ['nyc-coverage-summary.json', { covered: 4, total: 9, unit: 'lines', format: 'istanbul' }],
  ['nyc-coverage-final.json', { covered: 4, total: 11, unit: 'statements', format: 'istanbul' }],
  ['nyc-lcov.info', { covered: 4, total: 9, unit: 'lines', format: 'lcov' }],
  ['nyc-cobertura-coverage.xml', { covered: 4, total: 9, unit: 'lines', format: 'cobertura' }],
  // The test file is among them: node 20 counts every file that was loaded.
  ['node-lcov.info', { covered: 15, total: 17, unit: 'lines', format: 'lcov' }],
])('reads %s', (name, coverage) => {
  expect(readCoverage(report(name))).toEqual(coverage);
});

test('a line of lcov that several tests report is covered when one of them covers it', () => {
  const twice = 'TN:one\nSF:a.js\nDA:1,0\nend_of_record\nTN:two\nSF:a.js\nDA:1,2\nend_of_record\n';

  expect(readCoverage(twice)).toMatchObject({ covered: 1, total: 1 });
});

const bomb = `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]><coverage>&lol2;</coverage>`;

test.each([
  ['nothing', '  \n', 'is empty'],
  ['other text', 'all is well: 100 %', 'is no coverage report of istanbul'],
  ['cut JSON', '{"total": {"lines"', 'is broken JSON'],
  ['deep JSON', `{"total":${'['.repeat(200_000)}`, 'is broken JSON'],
  [
    'a negative count',
    '{"total":{"lines":{"covered":-1,"total":2}}}',
    'has no count in total.lines.covered',
  ],
  [
    'a fraction',
    '{"total":{"lines":{"covered":1.5,"total":2}}}',
    'has no count in total.lines.covered',
  ],
  [
    'more covered than there is',
    '{"total":{"lines":{"covered":9,"total":2}}}',
    'says that 9 of 2 lines are covered',
  ],
  ['no lines', '{"total":{"lines":{"covered":0,"total":0,"pct":"Unknown"}}}', 'counts no lines'],
  ['JSON of something else', '{"name":"x"}', 'has no statements of "name"'],
  ['an entity bomb', bomb, 'declares a document type or entities'],
  [
    'an external entity',
    '<!DOCTYPE coverage SYSTEM "file:///etc/passwd" [ ]><coverage/>',
    'declares a document type or entities',
  ],
  ['cut XML', '<coverage><packages>', 'is broken XML: <packages> is not closed'],
  ['a cut tag', '<coverage a="1', 'is broken XML: it ends within a tag'],
  [
    'a tag that closes nothing',
    '<coverage></packages></coverage>',
    'is broken XML: </packages> closes nothing',
  ],
  ['a cut comment', '<coverage><!-- x', 'is broken XML: "-->" is missing'],
  ['XML of something else', '<html><body/></html>', 'is no coverage report: it begins with <html>'],
  [
    'an attribute without a value',
    '<coverage><class filename></class></coverage>',
    'is broken XML: an attribute has no value',
  ],
  ['a broken profile of go', 'mode: set\nsum.go 1 1\n', 'is a broken profile of go'],
  ['a huge report', `{"total":"${'x'.repeat(17 * 1024 * 1024)}"}`, 'has more than 16 MB'],
])('refuses %s with a sentence', (_, text, says) => {
  expect(() => readCoverage(text)).toThrow(says);
});

test('the keys of a prototype are names like others', () => {
  expect(() =>
    readCoverage('{"__proto__":{"s":{"0":1}},"constructor":{"s":{"0":0}}}'),
  ).not.toThrow();
});

test('a report of 10 MB is read', () => {
  const line = (n: number): string => `<line number="${n}" hits="1"/>`;
  const lines = Array.from({ length: 300_000 }, (_, n) => line(n)).join('');
  const text = `<coverage><class filename="a"><lines>${lines}</lines></class></coverage>`;

  expect(readCoverage(text).covered).toBe(300_000);
});
