import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    reporters: ['default', './scripts/summary-reporter.ts'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reporter: ['text-summary'],
      thresholds: {
        'src/machines/**': { lines: 100, functions: 100, statements: 100, branches: 95 },
        'src/actors/**': { lines: 90 },
        'src/http/**': { lines: 90 },
      },
    },
  },
});
