import type { Reporter, TestModule } from 'vitest/node';

/** Says why a test was skipped, and ends the run with one line that people and programs can read. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const counts = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      const broken = module.state() === 'failed' && tests.every((test) => test.result().state !== 'failed');
      if (broken) counts.failed += 1;
      for (const test of tests) {
        const result = test.result();
        if (result.state === 'skipped') {
          counts.skipped += 1;
          console.log(`skipped: ${test.fullName}: ${result.note ?? 'no reason given'}`);
        } else if (result.state === 'failed') counts.failed += 1;
        else counts.passed += 1;
      }
    }
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  }
}
