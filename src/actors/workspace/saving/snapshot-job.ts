import { join, posix } from 'node:path';
import type { ObjectFormat } from '../git/blobs.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { protectedPlaces } from '../git/obeyed-places.ts';
import type { AttemptPlaces, LeftOut, WorkRecord } from '../git/work-records.ts';
import type { KeepIgnored } from './ignored-files.ts';

/** Everything needed to turn a folder into a tree, as plain data: it crosses to a worker thread. */
export interface SnapshotJob {
  readonly program: string;
  readonly gitDir: string;
  readonly userGitDir: string;
  readonly hasAutoCrlf: boolean;
  readonly format: ObjectFormat;
  readonly temporary: string;
  /** The top of the tree. Only what is below `prefix` (`` or `packages/one/`, latin1) is read. */
  readonly top: string;
  readonly prefix: string;
  readonly index: string;
  /** The tree to compare with when there is no such index; empty for none. */
  readonly base: string;
  /** The store of new objects, and the store of the others when it is another one. */
  readonly objects: string;
  readonly otherObjects: string | null;
  /** The git-lfs store for new content; null when large files are stored byte for byte. */
  readonly largeFiles: string | null;
  readonly isRepository: boolean;
  readonly protects: boolean;
  readonly hasIgnoreRules: boolean;
  /** Places (latin1) that are held: a link with a held name leads there, or the server trusts them. */
  readonly heldPlaces: readonly string[];
  /** Paths (latin1) that were copied into the folder; what git does not know of them stays out. */
  readonly copied: readonly string[];
  /** Changes of the start commit that the folder began without. */
  readonly carried: readonly IndexChange[];
  /** Null: nobody asks what git ignores. */
  readonly keep: KeepIgnored | null;
}

export interface IndexChange {
  readonly path: string;
  readonly to: { readonly mode: string; readonly oid: string } | null;
}

export interface Snapshot {
  readonly tree: string | null;
  readonly notes: readonly string[];
  readonly left: readonly LeftOut[];
}

export const indexRecords = (changes: readonly IndexChange[], format: ObjectFormat): Buffer => {
  const zeros = '0'.repeat(format === 'sha256' ? 64 : 40);
  const lines = changes.map(
    ({ path, to }) => `${to === null ? `0 ${zeros}` : `${to.mode} ${to.oid}`}\t${path}\0`,
  );
  return Buffer.from(lines.join(''), 'latin1');
};

export interface SnapshotOptions {
  readonly filters: readonly string[];
  /** Paths of the project that were copied into the folder. */
  readonly copies: readonly string[];
}

export const snapshotJob = async (
  dirs: GitDirs,
  { base, withheld }: WorkRecord,
  { top, index }: AttemptPlaces,
  { filters, copies }: SnapshotOptions,
): Promise<SnapshotJob> => {
  const { program, repository, gitDir, userGitDir, objects, temporary, hasIgnoreRules } = dirs;
  const places = await protectedPlaces(dirs, base);
  const autocrlf = repository.carried.find(([key]) => key === 'core.autocrlf')?.[1].toLowerCase();
  const prefix = Buffer.from(repository.prefix).toString('latin1');
  return {
    program,
    gitDir,
    userGitDir,
    format: repository.format,
    objects,
    otherObjects: null,
    hasIgnoreRules: hasIgnoreRules || copies.length > 0,
    temporary: join(temporary, 'snapshot'),
    top,
    index,
    base,
    carried: withheld,
    prefix,
    keep: null,
    copied: copies.map(
      (path) => prefix + Buffer.from(posix.normalize(path).replace(/\/$/, '')).toString('latin1'),
    ),
    hasAutoCrlf: autocrlf === 'true' || autocrlf === 'input',
    largeFiles: filters.includes('lfs') ? join(repository.commonDir, 'lfs') : null,
    isRepository: repository.kind === 'project',
    protects: true,
    heldPlaces: places.flatMap(({ path, protection }) =>
      protection === 'held' ? [Buffer.from(path).toString('latin1')] : [],
    ),
  };
};
