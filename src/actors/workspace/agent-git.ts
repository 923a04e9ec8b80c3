import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { byteForByte, configText, type GitDirs } from './git-dirs.ts';
import { plainText } from './plain.ts';

export interface AgentGit {
  readonly dir: string;
  readonly branch: string;
  readonly start: string;
  readonly index: string;
}

const settings = [
  ['core.bare', 'false'],
  ['core.logAllRefUpdates', 'true'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
] as const;

/**
 * Makes the git directory that an agent's own git uses for log, status, diff and commit. It has the
 * attempt's branch, reads the user's objects and knows no remote. Our git never reads it.
 */
export const makeAgentGit = async (
  { repository }: GitDirs,
  { dir, branch, start, index }: AgentGit,
): Promise<void> => {
  await rm(dir, { recursive: true, force: true });
  const ref = join(dir, 'refs', 'heads', branch);
  await Promise.all([
    mkdir(dirname(ref), { recursive: true, mode: 0o700 }),
    mkdir(join(dir, 'objects', 'info'), { recursive: true, mode: 0o700 }),
    mkdir(join(dir, 'info'), { recursive: true, mode: 0o700 }),
  ]);
  const shallow = await plainText(join(repository.commonDir, 'shallow'));
  const excluded = (await plainText(join(repository.commonDir, 'info', 'exclude'))) ?? '';
  await Promise.all([
    writeFile(join(dir, 'HEAD'), `ref: refs/heads/${branch}\n`),
    writeFile(join(dir, 'config'), configText(repository, settings)),
    writeFile(ref, `${start}\n`),
    writeFile(join(dir, 'info', 'attributes'), byteForByte),
    writeFile(join(dir, 'info', 'exclude'), excluded),
    writeFile(
      join(dir, 'objects', 'info', 'alternates'),
      `${join(repository.commonDir, 'objects')}\n`,
    ),
    readFile(index).then((bytes) => writeFile(join(dir, 'index'), bytes)),
    ...(shallow === null ? [] : [writeFile(join(dir, 'shallow'), shallow)]),
  ]);
};

/** Points the worktree at `dir`: an empty folder where a sandbox mounts it, else a `.git` file. */
export const linkAgentGit = async (top: string, dir: string, isMounted: boolean): Promise<void> => {
  const at = join(top, '.git');
  await (isMounted ? mkdir(at, { recursive: true }) : writeFile(at, `gitdir: ${dir}\n`));
};
