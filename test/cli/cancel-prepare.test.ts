import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { commitIn, gitIn } from '../support/git.ts';

/** More than the server copies before a person can type a cancel. */
const manyFiles = 30_000;

const foldersIn = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.name.includes('@'))
    .map(({ name }) => name);

test('a cancel during the preparation of a large worktree leaves no worktree and no branch', {
  tags: ['slow'],
}, async () => {
  const api = { backend: 'scripted' };
  const project = openProject(
    { api, workspace: { mode: 'worktree', copy: ['large'] } },
    { ownServer: true },
  );
  gitIn(project.root, 'init', '--quiet', '--initial-branch=main');
  gitIn(project.root, 'config', 'user.name', 'Amy');
  gitIn(project.root, 'config', 'user.email', 'amy@localhost');
  commitIn(project.root, 'a.txt', 'one\n');
  mkdirSync(join(project.root, 'large'));
  for (let number = 0; number < manyFiles; number += 1)
    writeFileSync(join(project.root, 'large', String(number)), '');
  const started = await project.agent('engineer', 'do it', '--async');
  const [id = ''] = /bd-\w+/.exec(started.out + started.err) ?? [];
  const worktrees = join(project.stateDir, 'worktrees');
  while (!foldersIn(worktrees).some((name) => !name.includes('.'))) await delay(5);
  const phase = JSON.parse((await project.agent('show', id, '--json')).out).phase;

  const cancelled = await project.agent('cancel', id);

  expect(phase).toBe('preparing');
  expect(cancelled.code).toBe(0);
  expect(JSON.parse((await project.agent('show', id, '--json')).out).status).toBe('cancelled');
  expect(gitIn(project.root, 'branch', '--list', 'agent/*')).toBe('');
  expect(foldersIn(worktrees)).toEqual([]);
});
