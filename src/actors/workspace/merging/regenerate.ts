import { closeSync, fstatSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { bytesText } from '../../../machines/bytes.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { openRegular } from '../../files/regular-file.ts';
import { shownName, textOf } from '../folders/names.ts';
import { plainFolder } from '../folders/plain-folder.ts';
import { blobName, keepBlob, readBlob } from '../git/blobs.ts';
import { commitTree } from '../git/commits.ts';
import { requiredLine, requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import type { InCommit, NamedAttempt, Regenerate } from '../port.ts';
import type { IndexChange } from '../saving/snapshot-job.ts';
import type { Side } from './merge.ts';

const bytesAtMost = 16 * 1024 * 1024;
const knownAtMost = 100;

/** Files that a merge could not merge, which a command makes from the others. */
interface Wanted extends Side, NamedAttempt {
  /** As on our side, and so in the merge. */
  readonly files: Files;
  /** The commands that make these files. */
  readonly commands: readonly string[];
}

type Files = readonly IndexChange[];

export interface Regenerated {
  /**
   * Resolves the conflicts of a merge when a command makes all those files again. @returns the tree; why
   * it could not; null: they are not such files, or nobody made them yet (then `wanted` says which)
   */
  resolve(
    dirs: GitDirs,
    ours: Side,
    merge: NamedAttempt & { readonly role: string },
    conflicted: { readonly tree: string; readonly conflicts: readonly string[] },
  ): Promise<string | { readonly why: string } | null>;
  wanted(): Wanted | null;
  /** Builds again with what was wanted. */
  make(dirs: GitDirs, wanted: Wanted, regenerate: Regenerate, signal: AbortSignal): Promise<void>;
}

/** A link is not made anew. */
const entryOf = /^(100644|100755) blob ([0-9a-f]+)\t/;

/** Replaces files of a tree. */
const withFiles = async (
  { git, temporary }: GitDirs,
  tree: string,
  files: readonly IndexChange[],
): Promise<string> => {
  const env = { GIT_INDEX_FILE: join(temporary, 'regenerated-index') };
  await requireGit('the merge cannot be read', git(['read-tree', tree], { env }));
  const records = files.map(({ path, to }) => `${to?.mode} ${to?.oid}\t${path}\0`);
  const input = Buffer.from(records.join(''), 'latin1');
  const put = git(['update-index', '-z', '--index-info'], { input, env });
  await requireGit('the files cannot be put into the merge', put);
  return requiredLine('the tree cannot be written', git(['write-tree'], { env }));
};

/** The file that a command left, which may have put anything there. @throws when it is no regular file */
const keepFile = (dirs: GitDirs, root: string, path: string): string => {
  const below = path.slice(Buffer.from(dirs.repository.prefix).toString('latin1').length);
  const folder = plainFolder(root, dirname(textOf(below)), 'leave');
  let file: number | null = null;
  try {
    if (folder !== null) file = openRegular(join(folder, basename(textOf(below))));
  } catch {
    // Whatever is there.
  }
  if (file === null) throw new Error(`its command left no regular file ${shownName(below)}`);
  try {
    const { size } = fstatSync(file);
    if (size > bytesAtMost)
      throw new Error(
        `its command left ${bytesText(size)} in ${shownName(below)}, more than ${bytesText(bytesAtMost)}`,
      );
    const blob = readBlob(file, size);
    const oid = blobName(blob, dirs.repository.format);
    keepBlob(dirs.objects, oid, blob);
    return oid;
  } finally {
    closeSync(file);
  }
};

const entriesAt = async (
  { git }: GitDirs,
  commit: string,
  paths: readonly string[],
): Promise<Files> => {
  const list = git(['ls-tree', '-z', commit, '--', ...paths]);
  const said = (await requireGit('the branch cannot be read', list)).toString('latin1');
  return said.split('\0').flatMap((line): Files => {
    const [start, mode = '', oid = ''] = entryOf.exec(line) ?? [];
    return start === undefined ? [] : [{ path: line.slice(start.length), to: { mode, oid } }];
  });
};

/**
 * Files such as package-lock.json are not merged but made anew, by the command that the user names
 * (`merge.regenerate`). The command runs in a folder of the merge with these files as on the branch; only
 * these files are taken from it. A failure counts for one build.
 */
export const createRegeneration = (inCandidate: InCommit) => {
  const known = new Map<string, Files>();
  const keyOf = ({ tree, files, commands }: Omit<Wanted, 'commit'>): string =>
    JSON.stringify([tree, files.map(({ path }) => path), commands]);

  return (byPath: Readonly<Record<string, string>>): Regenerated => {
    // A file may be called `constructor`.
    const commandOf = new Map(Object.entries(byPath));
    const failures = new Map<string, string>();
    let wanted: Wanted | null = null;
    const makeFiles = async (
      dirs: GitDirs,
      { taskId, attempt, commit, files, commands }: Wanted,
      regenerate: Regenerate,
      signal: AbortSignal,
    ): Promise<Files | string> =>
      inCandidate(
        commit,
        async (folder) => {
          const why = await regenerate.run({ taskId, attempt }, commands, folder, signal);
          if (why !== null) return why;
          return files.map(({ path, to }) => ({
            path,
            to: { mode: to?.mode ?? '', oid: keepFile(dirs, folder.root, path) },
          }));
        },
        signal,
      );
    return {
      wanted: () => wanted,
      make: async (dirs, asked, regenerate, signal) => {
        wanted = null;
        const made = await makeFiles(dirs, asked, regenerate, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          return messageOf(error);
        });
        if (typeof made === 'string') failures.set(keyOf(asked), made);
        else known.set(keyOf(asked), made);
        for (const oldest of [...known.keys()].slice(0, -knownAtMost)) known.delete(oldest);
      },
      resolve: async (dirs, ours, { role, ...of }, { tree, conflicts }) => {
        const { prefix } = dirs.repository;
        const commands = conflicts.flatMap((path) =>
          path.startsWith(prefix) ? (commandOf.get(path.slice(prefix.length)) ?? []) : [],
        );
        if (commands.length < conflicts.length) return null;
        const files = await entriesAt(dirs, ours.commit, conflicts);
        if (files.length < conflicts.length) return null;
        const base = await withFiles(dirs, tree, files);
        const asked = { ...of, tree: base, files, commands: [...new Set(commands)] };
        const key = keyOf(asked);
        const [made, why] = [known.get(key), failures.get(key)];
        if (made !== undefined) return withFiles(dirs, base, made);
        if (why !== undefined) return { why };
        const merge = { tree: base, parents: [ours.commit], message: 'To be made', role };
        wanted = { ...asked, commit: await commitTree(dirs, merge) };
        return null;
      },
    };
  };
};
