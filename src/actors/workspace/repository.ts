import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { type Git, GitError, required } from './git.ts';

/** The repository of a project, found once when the server starts. */
export interface Repository {
  readonly git: Git;
  /** Absolute; of the project's own working tree. */
  readonly gitDir: string;
  /** Absolute; the part that all working trees share. */
  readonly commonDir: string;
  /** The top of the project's own working tree. */
  readonly top: string;
  /** The project below it: `` or `packages/one/`. */
  readonly prefix: string;
}

const looksLike = /^git version (\d+)\.(\d+)/;
/** The first with `merge-tree --write-tree`. */
const mergesSince = [2, 38] as const;

/** Whether this git can merge without a working tree. */
export const canMerge = async (git: Git): Promise<boolean> => {
  const [, major = '0', minor = '0'] = looksLike.exec((await git(['--version'])).stdout) ?? [];
  return Number(major) > mergesSince[0] || (Number(major) === mergesSince[0] && Number(minor) >= mergesSince[1]);
};

/** The repository that a project lies in, or why worktrees cannot be made of it. */
export const findRepository = async (
  git: Git,
  projectRoot: string,
): Promise<{ readonly repository: Repository } | { readonly reason: string }> => {
  const asked = ['--absolute-git-dir', '--git-common-dir', '--show-toplevel', '--show-prefix'];
  const found = await git(['rev-parse', ...asked], { cwd: projectRoot });
  if (!found.ok) {
    const missing = (await git(['--version'])).ok ? 'this project is no git repository' : 'git is not installed';
    return {
      reason: /dubious ownership/.test(found.stderr) ? 'git does not trust the owner of this repository' : missing,
    };
  }
  const [gitDir = '', common = '', top = '', prefix = ''] = found.stdout.split('\n');
  const commonDir = await realpath(common.startsWith('/') ? common : join(projectRoot, common));
  const repository: Repository = { git, gitDir, commonDir, top, prefix };
  const head = await git(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'], { gitDir });
  return head.ok ? { repository } : { reason: 'this repository has no commit yet' };
};

const commands =
  /^(local|worktree)\s+(filter\.\S+\.(clean|smudge|process)|merge\.\S+\.driver|diff\.\S+\.(command|textconv))\b/m;

/**
 * What the flags of `createGit` do not stop: filters and drivers that the repository itself names, which git would run.
 * @throws GitError when there is one; those of the user's own configuration are fine
 */
export const refuseFilters = async ({ git, commonDir }: Pick<Repository, 'git' | 'commonDir'>): Promise<void> => {
  const all = ['config', '--show-scope', '--includes', '--get-regexp', '^(filter|merge|diff)\\.'];
  const found = commands.exec((await git(all, { gitDir: commonDir })).stdout);
  if (found === null) return;
  throw new GitError(
    `the repository's own configuration sets ${found[2]}, a program that git would run; move it to your own configuration (git config --global), or set workspace.mode to shared`,
  );
};

/** The commit at the top of the project's own working tree. */
export const headOf = ({ git, gitDir }: Repository): Promise<string> =>
  required('the repository has no commit', git(['rev-parse', '--verify', 'HEAD^{commit}'], { gitDir }));

export const contains = async ({ git, gitDir }: Repository, commit: string, ancestor: string): Promise<boolean> =>
  (await git(['merge-base', '--is-ancestor', ancestor, commit], { gitDir })).ok;

/** Who commits what agents did. */
export const asAgent = (role: string): Readonly<Record<string, string>> => {
  const [name, email] = [`agent-server (${role})`, 'agent-server@localhost'];
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email };
};

export type Combined = { readonly tree: string } | { readonly conflicts: readonly string[] };

/** Merges two commits without a working tree. @throws GitError when this git cannot */
export const combine = async ({ git, gitDir }: Repository, ours: string, theirs: string): Promise<Combined> => {
  if (!(await canMerge(git))) throw new GitError('merging needs git 2.38 or newer');
  const merged = await git(['merge-tree', '--write-tree', '--name-only', '--no-messages', ours, theirs], { gitDir });
  const [tree = '', ...names] = merged.stdout.split('\n');
  if (merged.ok) return { tree };
  if (merged.code === 1) return { conflicts: [...new Set(names.filter((name) => name !== ''))] };
  throw new GitError(`the commits could not be merged: ${merged.stderr.trim()}`);
};

/** A commit of a tree on top of others. */
export const commitTree = (
  { git, gitDir }: Repository,
  { tree, parents, message, role }: { tree: string; parents: readonly string[]; message: string; role: string },
): Promise<string> =>
  required(
    'the commit could not be made',
    git(['commit-tree', tree, ...parents.flatMap((parent) => ['-p', parent]), '-F', '-'], {
      gitDir,
      input: message,
      env: asAgent(role),
    }),
  );
