import {
  asObject,
  countOf,
  parseReportJson,
  requireReadable,
  UnreadableReport,
  xmlTags,
} from './read-report.ts';

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** `junit`, `tap`, `jest`, `pytest` or `go`. */
  readonly format: string;
}

/** Counts the cases themselves; the sums of a suite may say anything. */
const fromJunit = (text: string): TestCounts => {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  let result: keyof typeof counts | null = null;
  let isRoot = true;
  for (const { name, kind } of xmlTags(text)) {
    if (isRoot && name !== 'testsuites' && name !== 'testsuite')
      throw new UnreadableReport(`is no report of tests: it begins with <${name}>`);
    isRoot = false;
    if (name === 'testcase' && kind !== 'close') result = 'passed';
    if (result !== null && kind !== 'close') {
      if (name === 'failure' || name === 'error') result = 'failed';
      if (name === 'skipped' && result === 'passed') result = 'skipped';
    }
    if (name === 'testcase' && kind !== 'open' && result !== null) {
      counts[result] += 1;
      result = null;
    }
  }
  return { ...counts, format: 'junit' };
};

/** What follows the first `#` that no `\` precedes. */
const isTapDirective = (line: string): boolean => {
  const plain = line.replace(/\\./g, '');
  const at = plain.indexOf('#');
  return at >= 0 && /^\s*(?:SKIP|TODO)\b/i.test(plain.slice(at + 1));
};

/** Counts tests at the top. The sums of node:test itself count those inside too, and come first. */
const fromTap = (text: string): TestCounts => {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const sums = new Map<string, number>();
  let planned: number | null = null;
  for (const line of text.split(/\r?\n/)) {
    if (/^Bail out!/i.test(line)) throw new UnreadableReport('says that the tests bailed out');
    const [, plan] = /^1\.\.(\d{1,9})/.exec(line) ?? [];
    if (plan !== undefined) planned = Number(plan);
    const [, word, sum] = /^# (tests|pass|fail|cancelled|skipped|todo) (\d{1,9})$/.exec(line) ?? [];
    if (word !== undefined) sums.set(word, Number(sum));
    const [ok, not] = /^(not )?ok\b/.exec(line) ?? [];
    if (ok === undefined) continue;
    if (isTapDirective(line)) counts.skipped += 1;
    else if (not === undefined) counts.passed += 1;
    else counts.failed += 1;
  }
  const ran = counts.passed + counts.failed + counts.skipped;
  if (planned === null) throw new UnreadableReport('has no plan: the tests did not run to the end');
  if (planned !== ran) throw new UnreadableReport(`plans ${planned} tests and has ${ran}`);
  const sumOf = (...words: readonly string[]): number =>
    words.reduce((total, word) => total + (sums.get(word) ?? 0), 0);
  return sums.has('tests') && sums.has('pass')
    ? {
        passed: sumOf('pass'),
        failed: Math.max(sumOf('fail', 'cancelled'), counts.failed),
        skipped: sumOf('skipped', 'todo'),
        format: 'tap',
      }
    : { ...counts, format: 'tap' };
};

/** The JSON of jest and vitest: with `numTotalTests`. */
const countsOfJest = (report: Readonly<Record<string, unknown>>): TestCounts => {
  const count = (name: string): number => countOf(report[name] ?? 0, name);
  // A file that could not be loaded has no test.
  const brokenFiles = report['success'] === false && count('numFailedTests') === 0 ? 1 : 0;
  return {
    passed: countOf(report['numPassedTests'], 'numPassedTests'),
    failed: count('numFailedTests') + brokenFiles,
    skipped: count('numPendingTests') + count('numTodoTests'),
    format: 'jest',
  };
};

/** The JSON of pytest-json-report: with `summary`. */
const countsOfPytest = (summary: Readonly<Record<string, unknown>>): TestCounts => {
  const count = (name: string): number => countOf(summary[name] ?? 0, `summary.${name}`);
  return {
    passed: count('passed') + count('xpassed'),
    failed: count('failed') + count('error'),
    skipped: count('skipped') + count('xfailed'),
    format: 'pytest',
  };
};

/**
 * The lines of `go test -json`: the last action of each test. What began and has no end failed: its
 * program exited, or the report is cut.
 */
const countsOfGo = (lines: readonly Readonly<Record<string, unknown>>[]): TestCounts => {
  const results = new Map<string, unknown>();
  const packages = new Map<unknown, unknown>();
  for (const { Action, Test, Package } of lines) {
    const isEnd = Action === 'pass' || Action === 'fail' || Action === 'skip';
    if (Package === undefined || (!isEnd && Action !== 'run' && Action !== 'start')) continue;
    if (Test === undefined) packages.set(Package, Action);
    else {
      results.set(`${Package} ${Test}`, Action);
      if (!packages.has(Package)) packages.set(Package, 'start');
    }
  }
  const count = (...actions: readonly string[]): number =>
    [...results.values()].filter((each) => actions.includes(String(each))).length;
  // A package that does not compile has no test.
  const brokenPackages = [...packages.values()].filter(
    (each) => each === 'fail' || each === 'start',
  ).length;
  return {
    passed: count('pass'),
    failed: Math.max(count('fail', 'run'), brokenPackages),
    skipped: count('skip'),
    format: 'go',
  };
};

/** Older versions of go print it between the lines of JSON. */
const brokenBuild = /^FAIL\t(\S+) \[(?:build|setup) failed\]$/;

/** Lines that are no JSON are messages of go, such as those of its compiler. */
const goEventOf = (line: string): Readonly<Record<string, unknown>> | null => {
  if (line.startsWith('{')) return asObject(parseReportJson(line));
  const [, name] = brokenBuild.exec(line) ?? [];
  return name === undefined ? null : { Action: 'fail', Package: name };
};

const countsOfLines = (text: string): TestCounts =>
  countsOfGo(
    text
      .split(/\r?\n/)
      .map(goEventOf)
      .filter((each) => each !== null),
  );

const countsOfJson = (text: string): TestCounts => {
  const report = asObject(parseReportJson(text));
  const summary = asObject(report?.['summary']);
  if (report !== null && 'numTotalTests' in report) return countsOfJest(report);
  if (summary !== null && 'total' in summary) return countsOfPytest(summary);
  throw new UnreadableReport('is no report of jest, vitest, pytest or go');
};

/** Reads a report of a test runner, known by its content. @throws UnreadableReport */
export const readTestCounts = (report: string): TestCounts => {
  const text = requireReadable(report).trimStart();
  if (/^\{.*"Action":"/m.test(text.slice(0, 100_000))) return countsOfLines(text);
  if (text.startsWith('{')) return countsOfJson(text);
  if (text.startsWith('<')) return fromJunit(text);
  if (/^(TAP version|1\.\.\d|(not )?ok\b)/m.test(text.slice(0, 10_000))) return fromTap(text);
  throw new UnreadableReport('is no report of junit, TAP, jest, vitest, pytest or go');
};
