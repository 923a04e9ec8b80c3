import { describe, expect, test } from 'vitest';
import {
  recommendationOf,
  type StepEvidence,
  verdictOf,
} from '../../../src/actors/gates/evidence.ts';
import {
  checkArtifacts,
  checkCoverage,
  checkOnlyChanges,
  checkTests,
  judgeInThread,
} from '../../../src/actors/gates/judge.ts';
import {
  checkAnswers,
  checkFindings,
  checkNextSteps,
  checkSections,
} from '../../../src/actors/gates/research.ts';

type Files = Readonly<Record<string, string>>;

/** Evidence of a task whose commit has the files; all changed unless told. */
const evidence = (
  files: Files,
  {
    changed = Object.keys(files),
    leaves = [],
    reports = {},
    isVerified = false,
  }: {
    readonly changed?: readonly string[] | null;
    readonly leaves?: readonly string[];
    readonly reports?: Files;
    readonly isVerified?: boolean;
  } = {},
): StepEvidence => ({
  ...{ step: 'a', taskId: 'bd-a1', results: '', leaves, isVerified },
  files: {
    changed,
    list: async (path) =>
      Object.keys(files).filter(
        (file) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`),
      ),
    read: async (path) => files[path] ?? null,
  },
  report: async (path) => reports[path] ?? null,
});

describe('artifacts', () => {
  const leaves = ['docs/product/export/', 'docs/adr/'];

  test('pass when each is there, has text, and is in the diff', async () => {
    const files = { 'docs/product/export/a.md': 'x', 'docs/adr/0001.md': 'x' };

    expect(await checkArtifacts(evidence(files, { leaves }))).toEqual({
      passed: true,
      says: 'docs/product/export/, docs/adr/ in the diff of bd-a1',
    });
  });

  test.each([
    ['missing', { 'docs/adr/0001.md': 'x' }, undefined, 'docs/product/export/ is missing'],
    [
      'empty',
      { 'docs/product/export/a.md': ' \n', 'docs/adr/1.md': 'x' },
      undefined,
      'docs/product/export/ is empty',
    ],
    [
      'of before',
      { 'docs/product/export/a.md': 'x', 'docs/adr/1.md': 'x' },
      ['docs/adr/1.md'],
      'docs/product/export/ is there, but not in the diff',
    ],
    [
      'without a diff',
      { 'docs/product/export/a.md': 'x' },
      null,
      'cannot be checked: the attempt has no diff',
    ],
  ] as const)('fail when one is %s', async (_, files, changed, says) => {
    const found = await checkArtifacts(
      evidence(files, { leaves, ...(changed === undefined ? {} : { changed }) }),
    );

    expect(found).toEqual({ passed: false, says: expect.stringContaining(says) });
  });
});

test('no code changes: every path of the diff is allowed, or named', () => {
  const only = (changed: readonly string[] | null) =>
    checkOnlyChanges(evidence({}, { changed }), ['docs/research/', 'notes.md']);

  expect(only(['docs/research/a/report.md', 'notes.md'])).toMatchObject({ passed: true });
  expect(only(['docs/researcher.md', 'src/a.js'])).toEqual({
    passed: false,
    says: 'the diff of bd-a1 changes docs/researcher.md, src/a.js; allowed is docs/research/, notes.md',
  });
  expect(only(null)).toMatchObject({ passed: false });
});

describe('reports', () => {
  const summary = (covered: number) =>
    JSON.stringify({ total: { lines: { covered, total: 1000 } } });
  const paths = ['coverage/coverage-summary.json', 'lcov.info'];
  const withReport = (text: string) =>
    evidence({}, { reports: { 'coverage/coverage-summary.json': text } });

  test.each([
    [900, true, '90 % of lines'],
    [899, false, '89.9 % of lines (899 of 1000, istanbul); at least 90 % is asked for'],
  ])('%s of 1000 lines pass: %s', async (covered, passed, says) => {
    expect(await checkCoverage(withReport(summary(covered)), 90, paths)).toEqual({
      passed,
      says: expect.stringContaining(says),
    });
  });

  test('a report that is not there is named with every place that was looked at', async () => {
    expect(await checkCoverage(evidence({}), 90, paths)).toEqual({
      passed: false,
      says: 'found no report of bd-a1; looked for coverage/coverage-summary.json, lcov.info, in its diff (no command of --verify ran; give one when you start a workflow)',
    });
  });

  test('a report in the commit counts only when the attempt changed it, and no verify command ran', async () => {
    const files = { 'lcov.info': 'SF:a\nDA:1,1\nend_of_record\n' };

    expect(await checkCoverage(evidence(files), 90, paths)).toMatchObject({ passed: true });
    expect(await checkCoverage(evidence(files, { isVerified: true }), 90, paths)).toEqual({
      passed: false,
      says: expect.stringContaining('lcov.info, written by its verify commands'),
    });
    expect(await checkCoverage(evidence(files, { changed: [] }), 90, paths)).toMatchObject({
      passed: false,
    });
  });

  test.each([
    [[950, 100], 'lcov.info'],
    [[100, 950], 'coverage/coverage-summary.json'],
  ])('no report that the verify commands wrote hides another: %j', async (covered, shown) => {
    const reports = Object.fromEntries(paths.map((path, at) => [path, summary(covered[at] ?? 0)]));

    expect(await checkCoverage(evidence({}, { reports, isVerified: true }), 90, paths)).toEqual({
      passed: false,
      says: `10 % of lines (100 of 1000, istanbul); at least 90 % is asked for (${shown} of bd-a1)`,
    });
  });

  test('a broken report fails with what is wrong with it', async () => {
    expect(await checkCoverage(withReport('{'), 90, paths)).toEqual({
      passed: false,
      says: 'coverage/coverage-summary.json of bd-a1 is broken JSON',
    });
  });

  test.each([
    ['<testsuite><testcase/></testsuite>', true, '1 passed, 0 failed, 0 skipped (junit)'],
    [
      '<testsuite><testcase/><testcase><error/></testcase></testsuite>',
      false,
      '1 passed, 1 failed',
    ],
    [
      '<testsuite></testsuite>',
      false,
      '0 passed, 0 failed, 0 skipped (junit); at least 1 must pass',
    ],
  ])('tests: %s', async (text, passed, says) => {
    const found = await checkTests(evidence({}, { reports: { 'junit.xml': text } }), 1, [
      'junit.xml',
    ]);

    expect(found).toEqual({ passed, says: expect.stringContaining(says) });
  });
});

const report = `# Report

## 1. Summary
It is slow.

## Objectives
- Q1: What is slow?
- Q2: Why?

## Key findings
Q1: the loop. **Q2:** it reads twice.

## Detailed findings
### The loop
See \`src/a.js:2\` and src/a.js:1-3.
### The reader
src/lib/reader.ts:1

## Recommendations
Read once.

**Next steps:**
1. Change src/a.js
2. Measure

## References
- src/a.js
`;
const research = (text: string, more: Files = {}) =>
  evidence({
    'docs/r.md': text,
    'docs/q.md': '# Questions\n- Q1: What is slow?\n- Q2: Why?\n',
    'src/a.js': 'one\ntwo\nthree\n',
    'src/lib/reader.ts': 'one\n',
    ...more,
  });
const titles = [
  'summary',
  'objectives',
  'key findings',
  'detailed findings',
  'recommendations',
  'references',
];

describe('a research report', () => {
  const all = async (text: string, more: Files = {}) => {
    const given = research(text, more);
    return [
      await checkSections(given, 'docs/r.md', titles),
      await checkAnswers(given, 'docs/r.md', 'docs/q.md'),
      await checkFindings(given, 'docs/r.md', 'detailed findings'),
      await checkNextSteps(given, 'docs/r.md', 'recommendations'),
    ]
      .filter(({ passed }) => !passed)
      .map(({ says }) => says);
  };

  test('that is complete passes', async () => {
    expect(await all(report)).toEqual([]);
  });

  test.each([
    [
      'lacks a section',
      report.replace('## References', '## Links'),
      'docs/r.md has no section references',
    ],
    [
      'has an empty section',
      report.replace('It is slow.', ''),
      'docs/r.md has nothing in the section summary',
    ],
    [
      'has a heading in a code block only',
      report.replace('## References', '```\n## References\nx\n```'),
      'docs/r.md has no section references',
    ],
    [
      'leaves a question',
      report.replace('**Q2:** it reads twice.', ''),
      'docs/r.md does not answer Q2 of docs/q.md',
    ],
    [
      'says that a question is open',
      report.replace(' **Q2:** it reads twice.', '\nQ2: unknown'),
      'docs/r.md does not answer Q2 of docs/q.md',
    ],
    [
      'has a finding without evidence',
      report.replace('src/lib/reader.ts:1', 'I know it.'),
      'in the section detailed findings of docs/r.md: "the reader" has no file:line',
    ],
    [
      'names a line that is not there',
      report.replace('src/a.js:1-3', 'src/a.js:1-9'),
      'src/a.js:9 (it has 3 lines)',
    ],
    [
      'names a file that is not there',
      report.replace('src/lib/reader.ts:1', 'src/lib/writer.ts:1'),
      'src/lib/writer.ts:1 (no such file)',
    ],
    ['has no next steps', report.replace('**Next steps:**', 'Later:'), 'has no line "Next steps:"'],
    [
      'names no next step',
      report.replace('1. Change src/a.js\n2. Measure\n', ''),
      'is followed by no list',
    ],
  ])('that %s fails', async (_, text, says) => {
    expect((await all(text)).join('\n')).toContain(says);
  });

  test('without a question in its objectives fails', async () => {
    expect(await all(report, { 'docs/q.md': 'We look around.' })).toEqual([
      'docs/q.md has no question; each is a list item such as "- Q1: …?"',
    ]);
  });

  test('addresses are no references', async () => {
    const text = report.replace('src/lib/reader.ts:1', 'http://example.com:80/a.js and src/a.js:1');

    expect(await all(text)).toEqual([]);
  });

  test('that is not there fails', async () => {
    expect(await checkSections(evidence({}), 'docs/r.md', titles)).toEqual({
      passed: false,
      says: 'looked for docs/r.md in the work of bd-a1 and found no such file',
    });
  });
});

test.each([
  ['Fine.\n\nAPPROVED', 'APPROVED'],
  ['**Verdict: APPROVED.**', 'APPROVED'],
  ['- too slow\nCHANGES REQUIRED', 'CHANGES REQUIRED'],
  ['APPROVED\nbut then I saw\nCHANGES REQUIRED', 'CHANGES REQUIRED'],
  ['NOT APPROVED', null],
  ['It can be APPROVED when the tests pass.', null],
  ['approved', null],
  ['', null],
])('the verdict of %j is %s', (results, verdict) => {
  expect(verdictOf(results)).toBe(verdict);
});

test.each([
  ['Worth it.\nPURSUE', 'PURSUE'],
  ['Recommendation: DEFER', 'DEFER'],
  ['DO-NOT-PURSUE', 'DO NOT PURSUE'],
  ['We could pursue it', null],
])('the recommendation of %j is %s', (results, word) => {
  expect(recommendationOf(results)).toBe(word);
});

test('a gate at its deadline fails by name, and its thread ends', async () => {
  const never = { ...evidence({}), report: () => new Promise<never>(() => {}) };

  expect(
    await judgeInThread({ check: 'coverage', of: 'a', minimum: 80, reports: ['r'] }, never, 200),
  ).toMatchObject({
    passed: false,
    says: expect.stringMatching(/^the check coverage of bd-a1 took longer than 0\.2 s; make/),
  });
});
