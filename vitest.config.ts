import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { useStrangersEnvironment } from './test/support/environment.ts';
import { LongFirst } from './test/support/long-first.ts';

useStrangersEnvironment();

const tests = 'test/**/*.test.ts';
/** They replace a module or change the folder of the process, which other files would notice. */
const alone = ['test/actors/tracker/embedded.test.ts', 'test/actors/tools/confined-files.test.ts'];
const limits = {
  testTimeout: 120_000,
  hookTimeout: 120_000,
  setupFiles: './test/support/patience.ts',
  expect: { poll: { timeout: 60_000 } },
  // A machine that others use too can be too slow for a test once; the end of the run names it.
  retry: process.env['CI'] ? 1 : 0,
};
/** Node loads the built programs. */
const server = { deps: { external: [/\/dist\//] } };

export default defineConfig({
  test: {
    include: [tests],
    reporters: ['default', './scripts/summary-reporter.ts'],
    // Many tests wait, for processes of their own or for a time limit: another file can use the core meanwhile.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongFirst },
    tags: [
      { name: 'slow', description: 'Takes seconds: `npm run test:slow` runs it, and CI does not.' },
      { name: 'root', description: 'Needs root; CI runs these, slow ones too, as root.' },
    ],
    ...limits,
    // The files of a worker share what they import: to load everything once more takes a second for each file.
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include: [tests],
          exclude: alone,
          isolate: false,
          server,
          globalSetup: [
            './test/support/bd-host.ts',
            './test/support/repository.ts',
            './test/support/postgres-server.ts',
          ],
        },
      },
      { test: { name: 'alone', include: alone, ...limits } },
    ],
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reporter: ['text-summary'],
      thresholds: {
        'src/machines/**': { lines: 100, functions: 96, statements: 98, branches: 90 },
        'src/actors/**': { lines: 90 },
        'src/http/**': { lines: 90 },
      },
    },
  },
});
