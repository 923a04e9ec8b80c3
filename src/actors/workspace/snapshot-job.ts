import { join } from 'node:path';
import type { ObjectFormat } from './blobs.ts';
import type { GitDirs } from './git-dirs.ts';
import { linkedPlaces } from './obeyed-places.ts';
import type { AttemptPlaces, WorkRecord } from './work-records.ts';

/** All that is needed to turn a folder into a tree, as plain data: it crosses to a worker thread. */
export interface SnapshotJob {
  readonly program: string;
  /** The git directory that takes files byte for byte. */
  readonly gitDir: string;
  /** The one with the user's settings of line ends. */
  readonly userGitDir: string;
  readonly isAuto: boolean;
  readonly format: ObjectFormat;
  /** An empty folder of ours, for this alone. */
  readonly temporary: string;
  /** The top of the tree; only what is below `prefix` (`` or `packages/one/`, latin1) is read. */
  readonly top: string;
  readonly prefix: string;
  /** The index of what the folder began with; it is not changed. */
  readonly index: string;
  /** The tree for a folder that has no such index; empty for none. */
  readonly base: string;
  /** The store of new objects, and the store of the others when that is another one. */
  readonly objects: string;
  readonly otherObjects: string | null;
  /** The store of git-lfs that new content of its files goes to; null when they are kept byte for byte. */
  readonly largeFiles: string | null;
  readonly isRepository: boolean;
  readonly protects: boolean;
  readonly hasRules: boolean;
  /** Places (latin1) that are held because a link with a held name leads there. */
  readonly heldPlaces: readonly string[];
  /** Changes of the tree that the folder began without. */
  readonly carried: readonly Change[];
}

export interface Change {
  readonly path: string;
  readonly to: { readonly mode: string; readonly oid: string } | null;
}

export interface Snapshot {
  /** Null when nothing is different. */
  readonly tree: string | null;
  readonly notes: readonly string[];
}

/** Changes as `git update-index -z --index-info` reads them. */
export const indexRecords = (changes: readonly Change[], format: ObjectFormat): Buffer => {
  const zeros = '0'.repeat(format === 'sha256' ? 64 : 40);
  const lines = changes.map(({ path, to }) => `${to === null ? `0 ${zeros}` : `${to.mode} ${to.oid}`}\t${path}\0`);
  return Buffer.from(lines.join(''), 'latin1');
};

export const snapshotJob = async (
  dirs: GitDirs,
  { base, withheld }: WorkRecord,
  { top, index }: AttemptPlaces,
  filters: readonly string[],
): Promise<SnapshotJob> => {
  const { program, repository, gitDir, userGitDir, objects, temporary, hasRules } = dirs;
  const places = await linkedPlaces(dirs, base);
  const autocrlf = repository.carried.find(([key]) => key === 'core.autocrlf')?.[1].toLowerCase();
  return {
    ...{ program, gitDir, userGitDir, format: repository.format, objects, otherObjects: null, hasRules },
    ...{ temporary: join(temporary, 'snapshot'), top, index, base, carried: withheld },
    prefix: Buffer.from(repository.prefix).toString('latin1'),
    isAuto: autocrlf === 'true' || autocrlf === 'input',
    largeFiles: filters.includes('lfs') ? join(repository.commonDir, 'lfs') : null,
    isRepository: repository.kind === 'project',
    protects: true,
    heldPlaces: places.flatMap(({ path, protection }) =>
      protection === 'held' ? [Buffer.from(path).toString('latin1')] : [],
    ),
  };
};
