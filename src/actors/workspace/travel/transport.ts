import type { GitDirs } from '../git/git-dirs.ts';

/** A branch of the common repository, and how its commit is read. */
export interface WantedRef<Work> {
  readonly name: string;
  /** @throws when nobody of us wrote this commit */
  read(commit: string): Work;
}

export interface BroughtRef<Work> {
  readonly name: string;
  readonly tip: string;
  readonly work: Work;
}

/** Carries commits between our repository and one that all servers reach (ADR 0118). */
export interface WorkTransport {
  /** Makes those of these branches that exist readable in our repository. They get no name there. */
  bring<Work>(
    dirs: GitDirs,
    wanted: readonly WantedRef<Work>[],
    signal?: AbortSignal,
  ): Promise<readonly BroughtRef<Work>[]>;
  /** Moves a branch to a commit of ours. @returns false when it is not at `from` (null: absent) */
  put(
    dirs: GitDirs,
    to: { readonly name: string; readonly commit: string; readonly from: string | null },
    signal?: AbortSignal,
  ): Promise<boolean>;
  /** Removes a branch, if it exists. */
  remove(dirs: GitDirs, name: string, signal?: AbortSignal): Promise<void>;
  /** @throws GitError when it cannot be read or written; the message says what to do */
  check(dirs: GitDirs, signal?: AbortSignal): Promise<void>;
}

/** The repository that all servers reach, and this server's name among them. */
export interface CommonRepository {
  readonly transport: WorkTransport;
  readonly server: string;
}
