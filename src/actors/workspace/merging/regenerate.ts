import { basename, dirname, join } from 'node:path';
import type { TaskId } from '../../../machines/task.ts';
import { readRegularAsync } from '../../files/regular-file.ts';
import { plainFolder } from '../folders/plain-folder.ts';
import { commitTree } from '../git/commits.ts';
import { requiredLine, requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import type { InCommit, Regenerate } from '../port.ts';
import type { IndexChange } from '../saving/snapshot-job.ts';
import type { Side } from './merge.ts';

const bytesAtMost = 64 * 1024 * 1024;
const knownAtMost = 100;

/** Files that a merge could not merge, which a command makes from the others. */
interface Wanted {
  readonly taskId: TaskId;
  readonly attempt: number;
  /** The merge, in which these files are as on our side. */
  readonly merged: Side;
  /** With `/`, below the project. */
  readonly paths: readonly string[];
}

/** A mode and object of each path; or why the files could not be made. */
type Made = readonly IndexChange[] | { readonly why: string };

export interface Regenerated {
  /**
   * Resolves the conflicts of a merge when a command makes all those files again. @returns the tree; why
   * it could not; null: they are not such files, or nobody made them yet (then `wanted` says which)
   */
  resolve(
    dirs: GitDirs,
    ours: Side,
    merge: { readonly taskId: TaskId; readonly attempt: number; readonly role: string },
    conflicted: { readonly tree: string; readonly conflicts: readonly string[] },
  ): Promise<string | { readonly why: string } | null>;
  wanted(): Wanted | null;
}

const entryOf = /^(\d+) blob ([0-9a-f]+)\t/;

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

/**
 * Files such as package-lock.json are not merged but made anew, by the command that the user names
 * (`merge.regenerate`). The command runs in a folder of the merge with these files as on the branch; only
 * these files are taken from it.
 */
export const createRegeneration = (inCandidate: InCommit) => {
  /** By the tree of the merge with the files of our side. */
  const known = new Map<string, Made>();

  const make = async (
    dirs: GitDirs,
    { taskId, attempt, merged, paths }: Wanted,
    regenerate: Regenerate,
    signal: AbortSignal,
  ): Promise<Made> => {
    const { git, repository } = dirs;
    return inCandidate(
      merged.commit,
      async (folder) => {
        const why = await regenerate.run({ taskId, attempt }, paths, folder, signal);
        if (why !== null) return { why };
        const made: IndexChange[] = [];
        for (const path of paths) {
          const at = plainFolder(folder.root, dirname(path), 'leave');
          const file = at === null ? null : join(at, basename(path));
          const input =
            file === null ? null : await readRegularAsync(file, bytesAtMost).catch(() => null);
          if (input === null) return { why: `its command left no regular file ${path}` };
          const write = git(['hash-object', '-w', '--stdin', '--no-filters'], { input });
          const oid = await requiredLine('the file cannot be saved', write);
          const name = Buffer.from(`${repository.prefix}${path}`).toString('latin1');
          made.push({ path: name, to: { mode: '100644', oid } });
        }
        return made;
      },
      signal,
    );
  };

  return {
    /** Remembers what the next build needs. */
    make: async (
      dirs: GitDirs,
      wanted: Wanted,
      regenerate: Regenerate,
      signal: AbortSignal,
    ): Promise<void> => {
      const made = await make(dirs, wanted, regenerate, signal);
      known.set(wanted.merged.tree, made);
      for (const [oldest] of known)
        if (known.size > knownAtMost) known.delete(oldest);
        else break;
    },
    begin: (files: readonly string[]): Regenerated => {
      let wanted: Wanted | null = null;
      return {
        wanted: () => wanted,
        resolve: async (dirs, ours, { role, ...of }, { tree, conflicts }) => {
          const { prefix } = dirs.repository;
          const all = files.map((path) => `${prefix}${path}`);
          if (!conflicts.every((path) => all.includes(path))) return null;
          const list = dirs.git(['ls-tree', '-z', ours.commit, '--', ...conflicts]);
          const entries = (await requireGit('the branch cannot be read', list))
            .toString('latin1')
            .split('\0')
            .flatMap((line): IndexChange[] => {
              const [start, mode = '', oid = ''] = entryOf.exec(line) ?? [];
              return start === undefined
                ? []
                : [{ path: line.slice(start.length), to: { mode, oid } }];
            });
          if (entries.length < conflicts.length) return null;
          const base = await withFiles(dirs, tree, entries);
          const made = known.get(base);
          if (made !== undefined) return 'why' in made ? made : withFiles(dirs, base, made);
          const merge = { tree: base, parents: [ours.commit], message: 'To be made', role };
          const merged = { tree: base, commit: await commitTree(dirs, merge) };
          const paths = conflicts.map((path) => path.slice(prefix.length));
          wanted = { ...of, merged, paths };
          return null;
        },
      };
    },
  };
};
