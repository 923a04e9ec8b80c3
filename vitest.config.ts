import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    reporters: ['default', './scripts/summary-reporter.ts'],
    // Many tests wait for processes of their own; a core left free would only wait as well.
    maxWorkers: '100%',
    testTimeout: 20_000,
    hookTimeout: 30_000,
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
