import { expect, test } from 'vitest';
import { generatedNote, isGenerated } from '../../../src/actors/workspace/saving/snapshot.ts';

test.each([
  ['coverage/', true],
  ['.nyc_output/a.json', true],
  ['packages/a/.pytest_cache/v/x', true],
  ['coverage.md', false],
  ['src/coverage.ts', false],
  ['dist/index.js', false],
])('%s is generated: %s', (path, is) => {
  expect(isGenerated(path)).toBe(is);
});

test('a note names the folders once, and how many files they have', () => {
  const paths = ['index.js', 'coverage/a.html', 'coverage/lcov/b.html', '.nyc_output/1.json'];

  expect(generatedNote(paths)).toBe(
    '3 changed files in coverage/, .nyc_output/, which programs generate; if it is no part of the work, put it into .gitignore and run the task again',
  );
  expect(generatedNote(['coverage/a.html'])).toMatch(/^1 changed file in coverage\/,/);
  expect(generatedNote(['index.js'])).toBeNull();
});
