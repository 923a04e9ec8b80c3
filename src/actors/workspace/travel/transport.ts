import type { GitDirs } from '../git-dirs.ts';

/** A branch of the repository that all servers reach: `agent/<task>/<attempt>`. */
export interface WorkRef {
  readonly name: string;
  readonly tip: string;
}

/** Carries commits between our repository and one that all servers reach (ADR 0118). */
export interface WorkTransport {
  /**
   * Makes the branch of this name, and those below it, readable in our repository. They get no
   * name there.
   */
  bring(dirs: GitDirs, name: string, signal?: AbortSignal): Promise<readonly WorkRef[]>;
  /** Moves a branch to a commit of ours. @returns false when it is not at `from` (null: absent) */
  put(
    dirs: GitDirs,
    to: { readonly name: string; readonly commit: string; readonly from: string | null },
    signal?: AbortSignal,
  ): Promise<boolean>;
}

/** The repository that all servers reach, and this server's name among them. */
export interface CommonRepository {
  readonly transport: WorkTransport;
  readonly server: string;
}
