import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createSharedWorkspace } from '../../../src/actors/workspace/worktrees/select-workspace.ts';
import { anAttempt, describeWorkspace } from '../../contracts/workspace.ts';

const createProject = async (): Promise<string> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'workspace-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, 'project'));
  await symlink('project', join(folder, 'link'));
  return folder;
};

describeWorkspace('shared', async () =>
  createSharedWorkspace({ projectRoot: join(await createProject(), 'link') }),
);

test('every attempt works in the project folder itself', async () => {
  const folder = await createProject();

  const { root } = await createSharedWorkspace({ projectRoot: join(folder, 'link') }).open(
    anAttempt(2),
  );

  expect(root).toBe(join(folder, 'project'));
});

test('a project folder that does not exist is an error', async () => {
  const folder = await createProject();

  await expect(
    createSharedWorkspace({ projectRoot: join(folder, 'no') }).open(anAttempt()),
  ).rejects.toThrow('ENOENT');
});
