import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createGit, type Git, GitError } from './git.ts';
import { isPlain, plainText } from './plain.ts';
import type { Repository } from './repository.ts';

/** Git for one use of a repository: it obeys our configuration, and reads and writes the user's objects and branches. */
export interface GitDirs {
  readonly program: string;
  readonly repository: Repository;
  readonly objects: string;
  /** Takes and gives files byte for byte, and knows no filter. */
  readonly git: Git;
  readonly gitDir: string;
  /** With the user's settings of line ends: for the user's own checkout alone. */
  readonly userGit: Git;
  readonly userGitDir: string;
  /** Whether the user has rules of their own of what is ignored in the whole repository. */
  readonly hasRules: boolean;
  /** Whether the user has attributes of their own for the whole repository. */
  readonly hasAttributes: boolean;
  /** The content of HEAD when this use began. */
  readonly head: string;
  /** An empty folder, removed with the rest. */
  readonly temporary: string;
}

/** Files come out and go in byte for byte, whatever a tree says. */
export const byteForByte = '* -text -ident -filter !working-tree-encoding\n';
const headText = /^(ref: refs\/heads\/\S+|[0-9a-f]{40}|[0-9a-f]{64})\n?$/;

const pinned: readonly (readonly [string, string])[] = [
  ['core.bare', 'true'],
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.attributesFile', '/dev/null'],
  ['core.excludesFile', '/dev/null'],
  ['core.protectHFS', 'true'],
  ['core.protectNTFS', 'true'],
  ['core.splitIndex', 'false'],
  ['core.untrackedCache', 'false'],
  ['core.useReplaceRefs', 'false'],
  ['core.commitGraph', 'false'],
  ['core.sshCommand', '/bin/false'],
  ['core.quotePath', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['protocol.allow', 'never'],
  ['index.sparse', 'false'],
  ['submodule.recurse', 'false'],
  ['commit.gpgSign', 'false'],
];

const setting = ([key, value]: readonly [string, string]): string => {
  const cut = key.indexOf('.');
  return `[${key.slice(0, cut)}]\n\t${key.slice(cut + 1)} = ${value}\n`;
};

/** The text of a configuration. Its values are ours or of a short list of words. */
export const configText = (
  { format }: Pick<Repository, 'format'>,
  settings: readonly (readonly [string, string])[],
): string => {
  const version: readonly (readonly [string, string])[] =
    format === 'sha1'
      ? [['core.repositoryformatversion', '0']]
      : [
          ['core.repositoryformatversion', '1'],
          ['extensions.objectFormat', format],
        ];
  return [...version, ...settings].map(setting).join('');
};

interface Links {
  readonly attributes: string;
  readonly settings: readonly (readonly [string, string])[];
  readonly withLogs: boolean;
  readonly exclude: string;
}

const linkLogs = async ({ gitDir, commonDir }: Repository, dir: string): Promise<void> => {
  if (!(await isPlain(join(commonDir, 'logs'), 'folder'))) return;
  await mkdir(join(dir, 'logs'));
  if (await isPlain(join(commonDir, 'logs', 'refs'), 'folder'))
    await symlink(join(commonDir, 'logs', 'refs'), join(dir, 'logs', 'refs'));
  if (await isPlain(join(gitDir, 'logs', 'HEAD'), 'file'))
    await symlink(join(gitDir, 'logs', 'HEAD'), join(dir, 'logs', 'HEAD'));
};

const buildDir = async (repository: Repository, dir: string, head: string, links: Links): Promise<void> => {
  const { commonDir } = repository;
  await mkdir(join(dir, 'info'), { recursive: true, mode: 0o700 });
  const shallow = await plainText(join(commonDir, 'shallow'));
  await Promise.all([
    ...['objects', 'refs', 'packed-refs'].map((name) => symlink(join(commonDir, name), join(dir, name))),
    writeFile(join(dir, 'HEAD'), head),
    writeFile(join(dir, 'config'), configText(repository, links.settings)),
    writeFile(join(dir, 'info', 'attributes'), links.attributes),
    writeFile(join(dir, 'info', 'exclude'), links.exclude),
    ...(shallow === null ? [] : [writeFile(join(dir, 'shallow'), shallow)]),
    ...(links.withLogs ? [linkLogs(repository, dir)] : []),
  ]);
};

/** The content of HEAD. @throws GitError when it is neither a branch nor a commit */
export const readHead = async (gitDir: string): Promise<string> => {
  const head = (await plainText(join(gitDir, 'HEAD'))) ?? '';
  if (headText.test(head)) return head;
  throw new GitError(`${join(gitDir, 'HEAD')} names no branch and no commit`);
};

const saysSomething = (rules: string): boolean => /^[^#\r\n]/m.test(rules);

/** The user's own rules of what is ignored, as data. */
const excludeOf = async ({ commonDir }: Repository): Promise<string> =>
  (await plainText(join(commonDir, 'info', 'exclude'))) ?? '';

/** Builds git directories of ours for a repository below `folder`, and removes them when the work is done. */
export const withGitDirs = async <Result>(
  program: string,
  repository: Repository,
  folder: string,
  work: (dirs: GitDirs) => Promise<Result>,
): Promise<Result> => {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = await mkdtemp(join(folder, 'use-'));
  try {
    const head = await readHead(repository.gitDir);
    const [gitDir, userGitDir, empty] = ['git', 'user-git', 'empty'].map((name) => join(temporary, name)) as [
      string,
      string,
      string,
    ];
    const attributes = (await plainText(join(repository.commonDir, 'info', 'attributes'))) ?? '';
    const exclude = await excludeOf(repository);
    const strict = { attributes: byteForByte, settings: [...pinned, ['core.autocrlf', 'false'] as const], exclude };
    await Promise.all([
      mkdir(empty),
      buildDir(repository, gitDir, head, { ...strict, withLogs: false }),
      buildDir(repository, userGitDir, head, {
        attributes,
        settings: [...pinned, ...repository.carried],
        withLogs: true,
        exclude,
      }),
    ]);
    return await work({
      ...{ program, repository, objects: join(repository.commonDir, 'objects'), head, temporary: empty },
      ...{ hasRules: saysSomething(exclude), hasAttributes: saysSomething(attributes) },
      ...{ git: createGit(program, gitDir), gitDir, userGit: createGit(program, userGitDir), userGitDir },
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
};
