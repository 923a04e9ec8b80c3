import { execFileSync } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { childEnvironment } from '../../src/actors/process/run-command.ts';
import type { Workspace } from '../../src/actors/workspace/port.ts';
import {
  chooseWorkspace,
  type WorkspaceOptions,
} from '../../src/actors/workspace/worktrees/select-workspace.ts';
import { temporaryFolder } from './temporary.ts';

/** A person's settings; the programs under test do not get them. */
const GIT_CONFIG_GLOBAL = join(import.meta.dirname, 'git.config');

/** The real git in a folder, called by a person with a name; its output without the last newline. */
export const gitIn = (folder: string, ...args: readonly string[]): string =>
  execFileSync('git', args, {
    cwd: folder,
    env: { ...process.env, GIT_CONFIG_GLOBAL },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trimEnd();

export const commitIn = (folder: string, file: string, text: string): void => {
  writeFileSync(join(folder, file), text);
  gitIn(folder, 'add', '--', file);
  gitIn(folder, 'commit', '--quiet', '-m', `change ${file}`);
};

/** A copy of a repository with one commit, of `a.txt`: a copy needs one process, not six. */
export const makeRepository = (): string => {
  const folder = temporaryFolder();
  cpSync(inject('repository'), folder, { recursive: true, preserveTimestamps: true });
  gitIn(folder, 'update-index', '-q', '--refresh');
  return folder;
};

/** Worktrees whose commands are not confined, unless the options say so. */
export const worktreesOf = (
  projectRoot: string,
  folder: string,
  copies: readonly string[] = [],
  more: Partial<WorkspaceOptions> = {},
): Promise<Workspace> =>
  chooseWorkspace({
    ...{
      mode: 'worktree',
      projectRoot,
      folder,
      copies,
      environment: childEnvironment(process.env),
      sandboxed: false,
    },
    ...more,
  });
