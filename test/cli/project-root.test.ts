import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { findProject } from '../../src/cli/config/places/project.ts';
import { notRoot, testUnless } from '../support/needs.ts';
import { temporaryFolder } from '../support/temporary.ts';

const rootOf = (cwd: string, given?: string): string => findProject(given, cwd, {}).root;

/** A folder `shared/mine/deep`, all of the user's. */
const setUp = () => {
  const shared = join(temporaryFolder(), 'shared');
  const mine = join(shared, 'mine');
  const deep = join(mine, 'deep');
  mkdirSync(deep, { recursive: true });
  return { shared, mine, deep };
};
const repository = (folder: string): Promise<unknown> => execa('git', ['init', '-q', folder]);

test.each([
  ['an empty file', (git: string) => writeFileSync(git, '')],
  ['an empty folder', (git: string) => mkdirSync(git)],
  ['a file that points nowhere', (git: string) => writeFileSync(git, 'gitdir: /nowhere\n')],
  [
    'a folder without objects',
    (git: string) => [mkdirSync(git), writeFileSync(join(git, 'HEAD'), 'ref: x\n')],
  ],
])('a .git that is %s does not make the folder above a project', (_, plant) => {
  const { mine, deep } = setUp();
  plant(join(mine, '.git'));

  expect(rootOf(deep)).toBe(deep);
});

test('a repository, a worktree and a folder with .beads are found from below', async () => {
  const { shared, mine, deep } = setUp();
  await repository(mine);
  await execa('git', [
    '-C',
    mine,
    '-c',
    'user.name=a',
    '-c',
    'user.email=a@b',
    'commit',
    '-q',
    '--allow-empty',
    '-m',
    'a',
  ]);
  await execa('git', ['-C', mine, 'worktree', 'add', '-q', join(shared, 'tree')]);
  mkdirSync(join(shared, 'tree', 'below'));
  mkdirSync(join(shared, 'tracked', '.beads'), { recursive: true });
  mkdirSync(join(shared, 'tracked', 'below'));

  expect(rootOf(deep)).toBe(mine);
  expect(rootOf(join(shared, 'tree', 'below'))).toBe(join(shared, 'tree'));
  expect(rootOf(join(shared, 'tracked', 'below'))).toBe(join(shared, 'tracked'));
});

test.each([
  ['everybody', 0o777],
  ['everybody, with the sticky bit', 0o1777],
])('the search stops at a folder that %s may write', async (_, mode) => {
  const { shared, deep } = setUp();
  await repository(shared);
  mkdirSync(join(shared, '.beads'));
  chmodSync(shared, mode);

  expect(rootOf(deep)).toBe(deep);
});

testUnless(notRoot)(
  "a folder that other users may write stops the search, and another user's folder is no project",
  { tags: ['root'] },
  async () => {
    const { shared, mine, deep } = setUp();
    await repository(shared);
    chownSync(shared, 0, 12345);
    chmodSync(shared, 0o775);
    expect(rootOf(deep)).toBe(deep);

    chmodSync(shared, 0o755);
    expect(rootOf(deep)).toBe(shared);

    mkdirSync(join(mine, '.beads'));
    chownSync(join(mine, '.beads'), 12345, 12345);
    expect(rootOf(deep)).toBe(shared);

    chownSync(mine, 12345, 12345);
    const refused = `the project folder ${mine} belongs to another user; run this as its owner`;
    expect(() => rootOf(deep, mine)).toThrow(refused);
    expect(() => rootOf(mine, '.')).toThrow(refused);
  },
);

test("the user's private group counts as the user", async () => {
  const { mine, deep } = setUp();
  await repository(mine);
  chmodSync(mine, 0o775);

  expect(rootOf(deep)).toBe(process.getgid?.() === process.getuid?.() ? mine : deep);
});
