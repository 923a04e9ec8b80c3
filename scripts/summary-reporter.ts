import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';

const slowest = 10;

/** The time of a file: its imports, hooks and tests. */
const tookMs = (module: TestModule): number => {
  const { prepareDuration, collectDuration, setupDuration, duration } = module.diagnostic();
  return prepareDuration + collectDuration + setupDuration + duration;
};

/** The slowest files, each with its share of the total time. */
export const slowestFiles = (
  files: readonly { readonly name: string; readonly ms: number }[],
): string => {
  const total = files.reduce((sum, { ms }) => sum + ms, 0);
  const shown = files.toSorted((one, other) => other.ms - one.ms).slice(0, slowest);
  const share = (ms: number): string =>
    `${Math.round((100 * ms) / Math.max(total, 1))}%`.padStart(4);
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`.padStart(8);
  return [
    `slowest files, of ${(total / 1_000).toFixed(1)} s in ${files.length} files:`,
    ...shown.map(({ name, ms }) => `${seconds(ms)} ${share(ms)}  ${name}`),
  ].join('\n');
};

/** Those that failed before they passed: a run with retries shows them, and hides nothing. */
export const retriedTests = (names: readonly string[]): string =>
  names.map((name) => `passed only at the second try: ${name}\n`).join('');

/**
 * Prints why a test was skipped, which one needed a second try, and the slowest files; the last line is the summary, for people
 * and programs.
 */
export default class SummaryReporter implements Reporter {
  #filter = '';

  onInit({ config }: Vitest): void {
    this.#filter = config.tagsFilter?.join() ?? '';
  }

  /** `npm test` leaves out the slow tests (`!slow`), and `npm run test:slow` the others (`slow`). */
  #isLeftOut({ tags }: TestCase): boolean {
    const tag = this.#filter.replace('!', '');
    return tag !== '' && tags.includes(tag) === this.#filter.startsWith('!');
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const counts = { passed: 0, failed: unhandled.length, skipped: 0 };
    const retried: string[] = [];
    let leftOut = 0;
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      const broken =
        module.state() === 'failed' && tests.every((test) => test.result().state !== 'failed');
      if (broken) counts.failed += 1;
      for (const test of tests) {
        const result = test.result();
        if (this.#isLeftOut(test)) leftOut += 1;
        else if (result.state === 'skipped') {
          counts.skipped += 1;
          const why = test.meta().skipped ?? result.note ?? 'no reason given';
          console.log(`skipped: ${test.fullName}: ${why}`);
        } else if (result.state === 'failed') counts.failed += 1;
        else counts.passed += 1;
        if (test.diagnostic()?.flaky === true) retried.push(test.fullName);
      }
    }
    console.log(
      slowestFiles(
        modules.map((module) => ({
          name: relative(process.cwd(), module.moduleId),
          ms: tookMs(module),
        })),
      ),
    );
    process.stdout.write(retriedTests(retried));
    if (leftOut > 0) {
      const others = this.#filter.startsWith('!')
        ? 'npm run test:slow runs'
        : 'npm test runs most of';
      console.log(`not part of this run: ${leftOut} tests; ${others} them`);
    }
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  }
}
