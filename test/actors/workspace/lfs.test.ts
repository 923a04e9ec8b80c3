import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { noLfs, testUnless } from '../../support/needs.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** The real git-lfs, as a user installs it. */

const task = 'bd-a1' as TaskId;

const makeLfsRepository = (): string => {
  const project = makeRepository();
  gitIn(project, 'lfs', 'install', '--local', '--skip-repo');
  gitIn(project, 'lfs', 'track', '*.bin');
  writeFileSync(join(project, 'a.bin'), 'old '.repeat(1_000));
  writeFileSync(join(project, 'kept.bin'), 'kept '.repeat(1_000));
  gitIn(project, 'add', '-A');
  gitIn(project, 'commit', '--quiet', '-m', 'large files');
  return project;
};

const changeFiles = (root: string): void => {
  writeFileSync(join(root, 'a.bin'), 'new '.repeat(1_000));
  writeFileSync(join(root, 'b.bin'), 'more\r\n'.repeat(1_000));
  writeFileSync(join(root, 'empty.bin'), '');
  writeFileSync(join(root, 'plain.txt'), 'plain\n');
};
const largeFiles = (project: string): readonly string[] =>
  gitIn(project, 'lfs', 'ls-files', '--name-only').split('\n').sort();

testUnless(noLfs)(
  'files of git-lfs are saved and merged as git-lfs does it, where the user allows it',
  { tags: ['slow'] },
  async () => {
    const project = makeLfsRepository();
    const workspace = await worktreesOf(project, temporaryFolder(), [], { filters: ['lfs'] });
    const { root } = await workspace.open(anAttempt(1, task));
    changeFiles(root);

    const live = await workspace.diff(task, 1);
    const saved = await workspace.save(anAttempt(1, task), 'Change');
    const merged = await landAlone(workspace, task, 1, 'squash', 'Change');

    expect(live?.patch).toContain('+version https://git-lfs.github.com/spec/v1');
    expect(live?.patch).not.toContain('new new');
    expect(saved).toMatchObject({ files: 4, notes: [] });
    expect(merged).toMatchObject({ status: 'merged' });
    expect(gitIn(project, 'status', '--porcelain')).toBe('');
    expect(largeFiles(project)).toEqual(['a.bin', 'b.bin', 'kept.bin']);
    expect(readFileSync(join(project, 'a.bin'), 'utf8')).toBe('new '.repeat(1_000));
    expect(readFileSync(join(project, 'b.bin'), 'utf8')).toBe('more\r\n'.repeat(1_000));
    expect(gitIn(project, 'lfs', 'fsck')).toBe('Git LFS fsck OK');
  },
);

testUnless(noLfs)(
  'work that was saved before git-lfs was allowed is refused by name, and so is the filter before that',
  { tags: ['slow'] },
  async () => {
    const [project, state] = [makeLfsRepository(), temporaryFolder()];
    const workspace = await worktreesOf(project, state);
    const { root } = await workspace.open(anAttempt(1, task));
    changeFiles(root);
    await workspace.save(anAttempt(1, task), 'Change');

    const without = await landAlone(workspace, task, 1, 'squash', 'Change');
    const allowed = await worktreesOf(project, state, [], { filters: ['lfs'] });

    expect(without).toMatchObject({
      status: 'conflict',
      why: expect.stringContaining('allow it with workspace.filters'),
    });
    expect(await landAlone(allowed, task, 1, 'squash', 'Change')).toMatchObject({
      status: 'conflict',
      why: expect.stringContaining('saved as they are'),
      files: ['a.bin', 'b.bin'],
    });
    expect(gitIn(project, 'status', '--porcelain')).toBe('');
  },
);

testUnless(noLfs)(
  'work that changes the settings of git-lfs is refused by name',
  { tags: ['slow'] },
  async () => {
    const project = makeLfsRepository();
    const workspace = await worktreesOf(project, temporaryFolder(), [], { filters: ['lfs'] });
    const { root } = await workspace.open(anAttempt(1, task));
    writeFileSync(join(root, '.lfsconfig'), '[lfs]\n\turl = http://127.0.0.1:1/\n');

    await workspace.save(anAttempt(1, task), 'Change');

    expect(await landAlone(workspace, task, 1, 'squash', 'Change')).toMatchObject({
      status: 'conflict',
      why: expect.stringContaining('.lfsconfig'),
      files: ['.lfsconfig'],
    });
  },
);
