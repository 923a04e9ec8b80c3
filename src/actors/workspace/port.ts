import type { StartConflict } from '../../machines/agent/agent-context.ts';
import type {
  Car,
  Evidence,
  Landed,
  MergeConflict,
  QueueMember,
  Train,
} from '../../machines/merge-queue/merge-queue-context.ts';
import type { Onto } from '../../machines/review.ts';
import type { AttemptInput, ProjectProblem, TaskId } from '../../machines/task.ts';
import type { SerialQueue } from '../process/serial-queue.ts';
import type { SetupCache } from './folders/setup-cache.ts';
import type { WorkReads } from './worktrees/work-view.ts';

export interface OpenWorkspace {
  /** Absolute, symlinks resolved. */
  readonly root: string;
  /** Further paths that its commands may read: the repository, for `git log` and `git diff`. */
  readonly readable: readonly string[];
  /**
   * The git directory of the agent's own git, which ours never reads: its path, and where a sandbox
   * mounts it. Null when there is none.
   */
  readonly git: { readonly dir: string; readonly at: string } | null;
  /** Paths below the root that the server trusts: no tool writes them. */
  readonly held?: readonly string[];
  readonly notes: readonly string[];
  /** Work that the attempt depends on and does not have; the same each time it is opened. */
  readonly conflicts: readonly StartConflict[];
  /** True when it began with the project's own commit, without unmerged work of an agent. */
  readonly isUsersCommit: boolean;
  /** True when this call made the folder. */
  readonly isNew: boolean;
  /** Present when this call took it from another server. */
  readonly taken?: TakenWork;
  /** The last changes of its agent were lost with another server, and it made none since. */
  readonly lacksWork?: boolean;
}

/** Files of the user that a new worktree does not have. */
export interface Absent {
  readonly uncommitted: readonly string[];
  /** Ignored by git; without caches and what a command installs. */
  readonly ignored: readonly string[];
  /** The command that installs the dependencies of the project; null when it has none. */
  readonly install: string | null;
}

/** The changes of an attempt, on a branch that we never remove. */
export interface SavedWork {
  readonly branch: string;
  readonly base: string;
  readonly commit: string;
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
  readonly notes: readonly string[];
}

export const mergeModes = ['none', 'ff', 'squash'] as const;
/** `none`: by hand; `ff`: by fast-forward; `squash`: as one commit. */
export type MergeMode = (typeof mergeModes)[number];

export const filterNames = ['lfs'] as const;
/** A filter of git that a user can allow by name. */
export type FilterName = (typeof filterNames)[number];

/** The first cars of a train, which land together, and their members. */
export interface TrainToLand extends Pick<Train, 'into' | 'head'> {
  readonly cars: readonly Car[];
  readonly members: readonly QueueMember[];
  /** They passed on the tree of the last car, and are named in the commits; null: none ran. */
  readonly commands: readonly string[] | null;
  readonly evidence?: Evidence;
  /** Signed by the user's own git (`merge.sign`). */
  readonly sign?: boolean;
  /** Asked when the branch is where it was; false: another train is to be built. */
  readonly isWanted?: () => Promise<boolean>;
}

export type Discarded = 'discarded' | 'merged';

export interface Changes {
  readonly attempt: number;
  readonly patch: string;
  /** Changed paths that other programs run or trust (`obeyedIn`), sorted. */
  readonly guarded: readonly string[];
  /** Only for `names`. */
  readonly files?: readonly ChangedPath[];
}

export interface ChangedPath {
  readonly path: string;
  readonly renamed_from?: string;
}

/** A part of the changes: the names of all files without a patch, or the patch of some paths. */
export type DiffPart = { readonly names: true } | { readonly paths: readonly string[] };

/** Work that another program merged: `agent merge` without this server, or git. */
export interface MergeListener {
  readonly merged: (work: {
    readonly taskId: TaskId;
    readonly attempt: number;
    readonly into: string;
    readonly commit: string;
  }) => void;
  readonly failed: (error: unknown) => void;
}

export type CommandFolder = Pick<OpenWorkspace, 'root' | 'readable' | 'git'>;

/** Runs `work` in a new folder of a commit, which is removed then. One at a time. */
export type InCommit = <Result>(
  commit: string,
  work: (folder: CommandFolder) => Promise<Result>,
  signal: AbortSignal,
) => Promise<Result>;

/** Files that are made anew where a merge cannot merge them (`merge.regenerate`). */
export interface Regenerate {
  /** The command of each file, by its path below the project, with `/`. */
  readonly commands: Readonly<Record<string, string>>;
  /** Runs commands in a folder of the merge. @returns why one failed, or null */
  run(
    attempt: NamedAttempt,
    commands: readonly string[],
    folder: CommandFolder,
    signal: AbortSignal,
  ): Promise<string | null>;
}

/** As `InCommit`, with the project's own commit. */
export type InUsersCommit = <Result>(
  work: (folder: CommandFolder) => Promise<Result>,
  signal: AbortSignal,
) => Promise<Result>;

export interface WorkFiles {
  /** Paths that differ from where the attempt began, sorted; null where that is not known. */
  readonly changed: readonly string[] | null;
  /** Regular files below a folder, or the file itself; sorted. */
  list(path: string): Promise<readonly string[]>;
  /** Null when there is no such regular file, or it has more bytes. */
  read(path: string, bytesAtMost: number): Promise<string | null>;
}

/** Files that no agent wrote. All paths begin at the top of the repository. */
export interface ProjectFiles {
  /** Where the project is in its repository: `''` or `a/b/`. */
  readonly prefix: string;
  /** The regular files at the paths and below them. */
  find(
    ...paths: readonly string[]
  ): Promise<readonly { readonly path: string; readonly size: number }[]>;
  /** Null when there is no such regular file, or it has more bytes. */
  read(path: string, bytesAtMost: number): Promise<string | null>;
}

export interface WorkspaceReads {
  /** The saved work of an attempt; null when it changed nothing, or is not over. */
  readonly workOf: WorkReads;
  /**
   * Gets the work of an attempt that is over from other servers when it is not here; null where all work
   * is here. Does not reject.
   */
  readonly bringWork: ((taskId: TaskId, attempt: number) => Promise<void>) | null;
  leftOut(taskId: TaskId, attempt: number): Promise<readonly string[]>;
  /** The address of a remote of the user's repository; null: it has none of this name. */
  addressOf(remote: string): Promise<string | null>;
  diff(taskId: TaskId, attempt: number | null, part?: DiffPart): Promise<Changes | null>;
  /**
   * Reads what an attempt that is over left. Null when nothing is known of the attempt. With
   * `earlier` attempts that it goes on from, `changed` is what they and it changed together.
   */
  inspect<Result>(
    taskId: TaskId,
    attempt: number,
    read: (files: WorkFiles) => Promise<Result>,
    earlier?: readonly { readonly taskId: TaskId; readonly attempt: number }[],
  ): Promise<Result | null>;
  /**
   * Reads the user's commit that an attempt began with; for null, the one that an attempt would begin
   * with now. Null when there is none, or agents share the project's folder.
   */
  readProject<Result>(
    attempt: NamedAttempt | null,
    read: (files: ProjectFiles) => Promise<Result>,
  ): Promise<Result | null>;
}

/** Work with the project's branch in it; or why there is none. */
export type Updated =
  | MergeConflict
  | {
      /** `current`: it has all that the branch has. */
      readonly status: 'current' | 'clean';
      readonly into: string;
      /** The tip of the work, and of the project's branch, with the tree of that. */
      readonly from: string;
      readonly head: string;
      readonly headTree: string;
      readonly commit: string;
      readonly tree: string;
    };

/** Saved work becomes part of the project's branch. */
export interface WorkspaceMerges {
  /**
   * Merges the saved work of attempts onto the project's branch, each onto those before it, without a
   * file of the user. The work of other tasks that an attempt began with must be merged first. A
   * member that waits for those before it is in no list of the answer.
   */
  build(
    members: readonly QueueMember[],
    signal?: AbortSignal,
    regenerate?: Regenerate,
  ): Promise<Train>;
  /**
   * Moves the branch to the last car, and the user's files with it. Nothing is changed when it is not
   * where it was, or something of the user is in the way.
   */
  land(train: TrainToLand, signal?: AbortSignal): Promise<Landed>;
  /**
   * Merges the project's branch, or another one that was fetched, into saved work, and moves nothing.
   * Null: there is none to merge.
   */
  update(
    taskId: TaskId,
    attempt: number,
    signal?: AbortSignal,
    other?: Onto,
  ): Promise<Updated | null>;
  /** Moves the branch of the work to it. @returns why it could not, or null */
  keepUpdate(
    taskId: TaskId,
    attempt: number,
    update: Pick<Exclude<Updated, MergeConflict>, 'from' | 'head' | 'commit'>,
  ): Promise<string | null>;
  /** Notes that a forge merged the work as this commit: it is merged once the project's branch has that. */
  noteLanded(taskId: TaskId, attempt: number, commit: string): Promise<void>;
  /** Notes why the work of an attempt is not merged, until it is. */
  noteRefused(taskId: TaskId, attempt: number, why: MergeConflict): Promise<void>;
  /** Runs `work` in a new folder of a car's commit; null where there are no new folders. */
  readonly inCandidate: InCommit | null;
  /**
   * Notes that nobody wants the saved work of an attempt: it is not merged or built on any more. Its
   * branches stay. @returns null when there is no work; `merged`: it is in the project's branch
   */
  discard(taskId: TaskId, attempt: number, reason: string | null): Promise<Discarded | null>;
  /** Also reports what was merged by git while nobody watched. @returns a function that stops it */
  watchMerges(listener: MergeListener): () => void;
}

/** An attempt that another server had, as this one took it. `notes`: for people. */
export type TakenWork = { readonly notes: readonly string[] } & (
  | { readonly has: 'nothing' }
  /** Its folder as this step left it. */
  | { readonly has: 'step'; readonly step: string }
  /** It is over: its work was saved. */
  | { readonly has: 'all' }
);

export type NamedAttempt = Pick<AttemptInput, 'taskId' | 'attempt'>;

/**
 * An attempt, and the secret that names its work in the common repository and proves it. Only the
 * store has it: so another attempt of this number, and what somebody else wrote there, is not taken.
 */
export interface KeyedAttempt extends NamedAttempt {
  readonly key: string;
}

/** Unmerged work as the radar saw it last, and the work of others that it will conflict with. */
export interface SeenWork {
  readonly attempt: number;
  readonly isLive: boolean;
  readonly size: {
    readonly files: number;
    readonly insertions: number;
    readonly deletions: number;
  };
  readonly conflicts: readonly { readonly task_id: TaskId; readonly paths: readonly string[] }[];
}

/**
 * Looks again at the folders of attempts that are at work, and at all other unmerged work it knows of.
 * `made`: files below the project that a merge makes anew. @returns all that it knows now, and why some of
 * it is missing, or null
 */
export type Radar = (
  changed: readonly NamedAttempt[],
  made: readonly string[],
  signal: AbortSignal,
) => Promise<{ readonly seen: ReadonlyMap<TaskId, SeenWork>; readonly problem: unknown }>;

/** Puts the folder of an attempt, as a step left it, where other servers can take it. */
export type KeepFolder = (
  attempt: NamedAttempt,
  step: string,
  signal?: AbortSignal,
) => Promise<void>;

/** Work of attempts goes from server to server through a repository that all reach (ADR 0118). */
export interface WorkTravel {
  /** False: nothing is put there, nor gotten. */
  readonly hasRepository: boolean;
  /**
   * Puts the folder of an attempt there, as a step left it. @throws GitError when it cannot, or
   * another server goes on with the attempt
   */
  keep(keyed: KeyedAttempt, step: string, signal?: AbortSignal): Promise<void>;
  /** Replaces what this server has of an attempt that another one had after it. */
  take(attempt: AttemptInput, key: string, signal?: AbortSignal): Promise<TakenWork>;
  /** Gets what attempts on other servers left. @returns those of which nothing is here after that */
  takeWork(keyed: readonly KeyedAttempt[], signal?: AbortSignal): Promise<readonly KeyedAttempt[]>;
  /**
   * Puts what an attempt that is over left there, as it is now. @returns why it could not; null when
   * it could, or another server has the attempt
   */
  send(keyed: KeyedAttempt, signal?: AbortSignal): Promise<string | null>;
  /** @returns why it cannot be read and written, and what to do; null: it can, or there is none */
  check(): Promise<string | null>;
  /** Removes what an attempt has there. @returns why it could not, or null */
  remove(keyed: KeyedAttempt): Promise<string | null>;
  /** Finished attempts that could not be sent before. */
  unsent(): Promise<readonly NamedAttempt[]>;
}

/** A branch at a forge. */
export interface ForgeBranch {
  /** `https://`, `ssh://`, or `git@host:path` */
  readonly url: string;
  readonly branch: string;
  /** Goes to the host of the address: null for another host than the forge's. Not used by ssh. */
  readonly token: string | null;
}

/** `seen`: its commit as it was read or pushed last; null: there was none. */
export interface PushTarget extends ForgeBranch {
  readonly seen: string | null;
}

/** Saved work with commits of others; or why they do not get into it. */
export type TakenIn =
  | { readonly status: 'taken'; readonly commit: string; readonly tree: string }
  | { readonly status: 'refused'; readonly why: string };

/** `moved`: the branch is at this commit, which is not the one that was seen: a person's. */
export type Pushed =
  | { readonly status: 'pushed'; readonly commit: string; readonly tree: string }
  | { readonly status: 'moved'; readonly commit: string }
  | {
      readonly status: 'refused';
      readonly why: string;
      /** The token, or the user, may not push there. */
      readonly lacksRight?: true;
    };

/** Gives each attempt a folder to work in. Opening the same attempt again gives the same folder. */
export interface Workspace extends WorkspaceReads, WorkspaceMerges {
  readonly mode: 'shared' | 'worktree';
  /** For people: where agents work, and why, if it is not what the user asked for. */
  describe(): string;
  /** Why no attempt can begin on this machine; null: it can. */
  refusal(): string | null;
  /** Why no attempt at this task can begin in this project; null: one can. */
  problem(taskId: TaskId): Promise<ProjectProblem | null>;
  /** Paths outside git that a new folder gets; none where there are no new folders. */
  readonly copies: readonly string[];
  /**
   * `after`: the tasks whose work this attempt builds on. An aborted signal rejects and leaves
   * nothing new. @throws an error whose message may be shown
   */
  open(
    attempt: AttemptInput,
    after?: readonly TaskId[],
    signal?: AbortSignal,
  ): Promise<OpenWorkspace>;
  /** Files that a new folder would not have; empty where agents work in the user's own folder. */
  absent(signal?: AbortSignal): Promise<Absent>;
  /** Null where the folder is the project's own. */
  readonly travel: WorkTravel | null;
  /** Null where no other server could take it. */
  readonly keep: KeepFolder | null;
  /** Null where there are no new folders. */
  readonly setups: { readonly cache: SetupCache; readonly inUsersCommit: InUsersCommit } | null;
  /**
   * Gives a folder with the files of the project's own commit, which nobody changes; null where
   * agents work in the project's own folder.
   */
  readonly usersFiles: (() => Promise<string>) | null;
  /**
   * Runs commands that check an attempt. What they change in its folder is no part of its work,
   * unless the agent changes it afterwards. In a folder that attempts share it is not told apart.
   */
  asCheck<Result>(attempt: AttemptInput, run: () => Promise<Result>): Promise<Result>;
  /** Null where agents share one folder. */
  readonly radar: Radar | null;
  /** Files of a running attempt that began with conflict markers and still have them. */
  unresolved(attempt: NamedAttempt): Promise<readonly string[]>;
  /** Runs `work` that changes files. In a folder that attempts share, one at a time. */
  readonly alone: SerialQueue;
  /**
   * Saves the changes of an attempt on its branch and releases its folder. No process of the
   * attempt may run any more. Saving again gives the same result; the last call decides whether the
   * work is complete. Incomplete work never gets into the folder of a later task. @returns null
   * when nothing changed, or the attempt works in the project's own folder @throws when the work
   * cannot be saved; then the folder stays
   */
  save(attempt: AttemptInput, title: string, isComplete?: boolean): Promise<SavedWork | null>;
  /**
   * Pushes the saved work of an attempt. Pushing again is safe. @returns null when there is no saved
   * work, or it is in no repository of the user @throws an error when the other side does not answer
   */
  push(
    taskId: TaskId,
    attempt: number,
    target: PushTarget,
    signal: AbortSignal,
  ): Promise<Pushed | null>;
  /** Gets the commits of a branch. @returns its tip; null: there is none @throws as `push` */
  fetch(branch: ForgeBranch, signal: AbortSignal): Promise<string | null>;
  /**
   * Brings a commit that was fetched into saved work, which was pushed as `pushed` before. Null: there
   * is no such work.
   */
  takeIn(
    taskId: TaskId,
    attempt: number,
    others: { readonly commit: string; readonly pushed: string },
    signal: AbortSignal,
  ): Promise<TakenIn | null>;
  /**
   * Saves the attempts that are over and could not be saved when they ended. @returns those that
   * still cannot
   */
  sweep(
    isOver: (taskId: TaskId, attempt: number) => boolean | Promise<boolean>,
  ): Promise<readonly string[]>;
}
