import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ObjectFormat } from './blobs.ts';
import { createGit, type Git, GitError } from './git.ts';
import { isPlain, plainText } from './plain.ts';
import { takeUse } from './uses.ts';

/**
 * Git for one use of a repository. It reads our configuration, and the user's objects and branches.
 */
export interface GitDirs {
  readonly program: string;
  readonly repository: Repository;
  readonly objects: string;
  /** Reads and writes files byte for byte, without filters. */
  readonly git: Git;
  readonly gitDir: string;
  /** With the user's line-end settings; only for the user's own checkout. */
  readonly userGit: Git;
  readonly userGitDir: string;
  readonly hasIgnoreRules: boolean;
  readonly hasAttributes: boolean;
  readonly head: string;
  readonly temporary: string;
}

/** Files go in and out byte for byte, whatever a tree's attributes say. */
export const byteForByte = '* -text -ident -filter !working-tree-encoding\n';
const headPattern = /^(ref: refs\/heads\/\S+|[0-9a-f]{40}|[0-9a-f]{64})\n?$/;

export const pinnedSettings: readonly (readonly [string, string])[] = [
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
  ['core.multiPackIndex', 'false'],
  // A name of 40 digits is an object: no reference is asked for it.
  ['core.warnAmbiguousRefs', 'false'],
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

interface DirContent {
  readonly files: readonly (readonly [name: string, text: string])[];
  readonly links: readonly (readonly [name: string, target: string])[];
}

/** The existing reflogs; read each time, since git writes to them. */
const logsOf = async ({
  gitDir,
  commonDir,
}: Repository): Promise<readonly (readonly [string, string])[]> => {
  if (!(await isPlain(join(commonDir, 'logs'), 'folder'))) return [];
  const [refs, head] = [join(commonDir, 'logs', 'refs'), join(gitDir, 'logs', 'HEAD')];
  const hasRefs = await isPlain(refs, 'folder');
  const hasHead = await isPlain(head, 'file');
  return [
    ...(hasRefs ? [['logs/refs', refs] as const] : []),
    ...(hasHead ? [['logs/HEAD', head] as const] : []),
  ];
};

const buildGitDir = async (
  dir: string,
  commonDir: string,
  { files, links }: DirContent,
): Promise<void> => {
  await mkdir(join(dir, 'info'), { recursive: true, mode: 0o700 });
  await mkdir(join(dir, 'logs'));
  const shared = ['objects', 'refs', 'packed-refs'].map(
    (name) => [name, join(commonDir, name)] as const,
  );
  await Promise.all([
    ...[...shared, ...links].map(([name, target]) => symlink(target, join(dir, name))),
    ...files.map(([name, text]) => writeFile(join(dir, name), text)),
  ]);
};

/** The branch or commit of HEAD. @throws GitError when it names neither a branch nor a commit */
export const readHead = async (gitDir: string): Promise<string> => {
  const head = (await plainText(join(gitDir, 'HEAD'))) ?? '';
  if (headPattern.test(head)) return head;
  throw new GitError(`${join(gitDir, 'HEAD')} names no branch and no commit`);
};

const saysSomething = (rules: string): boolean => /^[^#\r\n]/m.test(rules);

const gitDirContent = async (repository: Repository, head: string) => {
  const { commonDir } = repository;
  const textOf = async (...path: readonly string[]): Promise<string> =>
    (await plainText(join(commonDir, ...path))) ?? '';
  const exclude = await textOf('info', 'exclude');
  const attributes = await textOf('info', 'attributes');
  const shallow = await plainText(join(commonDir, 'shallow'));
  const filesWith = (
    ownAttributes: string,
    settings: readonly (readonly [string, string])[],
  ): DirContent['files'] => [
    ['HEAD', head],
    ['config', configText(repository, [...pinnedSettings, ...settings])],
    ['info/attributes', ownAttributes],
    ['info/exclude', exclude],
    ...(shallow === null ? [] : [['shallow', shallow] as const]),
  ];
  const strict: DirContent = {
    files: filesWith(byteForByte, [['core.autocrlf', 'false']]),
    links: [],
  };
  const user: DirContent = {
    files: filesWith(attributes, repository.carried),
    links: await logsOf(repository),
  };
  return {
    strict,
    user,
    hasIgnoreRules: saysSomething(exclude),
    hasAttributes: saysSomething(attributes),
  };
};

/**
 * Runs work with git directories below `folder`, taken from a pool while their content is still
 * current.
 */
export const withGitDirs = async <Result>(
  program: string,
  repository: Repository,
  folder: string,
  work: (dirs: GitDirs) => Promise<Result>,
): Promise<Result> => {
  const head = await readHead(repository.gitDir);
  const { strict, user, ...rules } = await gitDirContent(repository, head);
  const key = JSON.stringify([folder, repository.commonDir, strict, user]);
  const made = await takeUse(folder, key, async (dir) => {
    await buildGitDir(join(dir, 'git'), repository.commonDir, strict);
    await buildGitDir(join(dir, 'user-git'), repository.commonDir, user);
  });
  const [gitDir, userGitDir] = [join(made.dir, 'git'), join(made.dir, 'user-git')];
  try {
    return await work({
      program,
      repository,
      objects: join(repository.commonDir, 'objects'),
      head,
      temporary: made.temporary,
      ...rules,
      git: createGit(program, gitDir, {}, repository.commonDir),
      gitDir,
      userGit: createGit(program, userGitDir, {}, repository.commonDir),
      userGitDir,
    });
  } finally {
    await made.release();
  }
};

export interface Repository {
  readonly kind: 'project' | 'own';
  /** The top of the user's working tree, absolute, symlinks resolved. */
  readonly top: string;
  /** The project below it: `` or `packages/one/`. */
  readonly prefix: string;
  readonly gitDir: string;
  /** Absolute; shared by all working trees. */
  readonly commonDir: string;
  readonly format: ObjectFormat;
  /** Folders of hooks, relative to the top. A person sees what changes there. */
  readonly hooks: readonly string[];
  /** Paths that the server trusts, relative to the top. No agent changes them. */
  readonly trusted: readonly string[];
  /** The only values of the user's configuration that we use: those that say how files look. */
  readonly carried: readonly (readonly [key: string, value: string])[];
}
