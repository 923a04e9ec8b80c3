import { expect, test } from 'vitest';
import { staysInside } from '../../../src/actors/workspace/merging/obstacles.ts';

test.each([
  ['docs/a/link', '../../README'],
  ['docs/a/link', '../..'],
  ['link', 'docs//a/./file'],
  ['link', '.gitignore'],
  ['link', '...'],
])('a link %s to %s stays inside the project', (path, target) =>
  expect(staysInside(path, target)).toBe(true),
);

test.each([
  ['link', '/etc/passwd'],
  ['link', '..'],
  ['docs/link', '../../home'],
  ['keys', 'docs/a/b/top/../home/.ssh'],
  ['link', 'docs/..'],
  ['link', '.git/hooks'],
  ['a/link', '../.GIT/hooks'],
  ['link', 'docs/git~1'],
])('a link %s to %s may lead out of the project, or into .git', (path, target) =>
  expect(staysInside(path, target)).toBe(false),
);
