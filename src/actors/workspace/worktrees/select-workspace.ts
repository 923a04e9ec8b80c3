import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProjectProblem, TaskId } from '../../../machines/task.ts';
import { createSerialQueue } from '../../process/serial-queue.ts';
import { hasHandles } from '../folders/handles.ts';
import { commitOf } from '../git/commits.ts';
import { findRepository } from '../git/find-repository.ts';
import { findGit, GitError } from '../git/git.ts';
import { withGitDirs } from '../git/git-dirs.ts';
import type { Workspace } from '../port.ts';
import { parseWorkAddress } from '../travel/address.ts';
import { createFolderTransport } from '../travel/folder-transport.ts';
import { createNetworkTransport } from '../travel/network-transport.ts';
import type { CommonRepository } from '../travel/transport.ts';
import { nothingAbsent } from './absent.ts';
import { requireBranches } from './work-parts.ts';
import { createWorktreeWorkspace } from './worktree.ts';

interface SharedOptions {
  readonly projectRoot: string;
  /**
   * True when a sandbox confines the commands of agents; then one attempt at a time changes files.
   */
  readonly sandboxed?: boolean;
}

/**
 * Every attempt works in the project folder itself. @throws a system error when the folder does not
 * exist
 */
export const createSharedWorkspace = ({
  projectRoot,
  sandboxed = false,
}: SharedOptions): Workspace => {
  const oneWriter = createSerialQueue();
  return {
    mode: 'shared',
    copies: [],
    describe: () =>
      sandboxed
        ? 'the project folder, shared by all attempts, one writer at a time'
        : 'the project folder, shared by all attempts',
    refusal: () => null,
    problem: async () => null,
    open: async () => ({
      root: await realpath(projectRoot),
      readable: [],
      git: null,
      notes: [],
      conflicts: [],
      isUsersCommit: true,
      isNew: false,
    }),
    absent: async () => nothingAbsent,
    travel: null,
    keep: null,
    setups: null,
    usersFiles: null,
    radar: null,
    // So no command swaps a folder for a link while another's mounts are made, and each learns what
    // it made.
    alone: sandboxed ? oneWriter : (work) => work(),
    unresolved: async () => [],
    update: async () => null,
    keepUpdate: async () => null,
    asCheck: (_attempt, run) => run(),
    save: async () => null,
    push: async () => null,
    fetch: async () => null,
    takeIn: async () => null,
    workOf: async () => null,
    bringWork: null,
    leftOut: async () => [],
    addressOf: async () => null,
    sweep: async () => [],
    build: async (members) => ({
      into: '',
      head: '',
      tree: '',
      cars: [],
      ended: members.map(({ taskId, attempt }) => ({
        taskId,
        attempt,
        merged: { status: 'nothing' },
      })),
    }),
    land: async () => ({ status: 'moved' }),
    noteLanded: async () => {},
    noteRefused: async () => {},
    inCandidate: null,
    discard: async () => null,
    watchMerges: () => () => {},
    diff: async () => null,
    inspect: async () => null,
    readProject: async () => null,
  };
};

export interface WorkspaceOptions {
  readonly mode: 'worktree' | 'shared';
  readonly projectRoot: string;
  readonly folder: string;
  readonly copies: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly filters?: readonly string[];
  /** Absolute paths that the server trusts: no agent changes them. */
  readonly trusted?: () => readonly string[];
  readonly keep?: readonly string[];
  readonly userEnv?: NodeJS.ProcessEnv;
  /** Removes secrets from what is kept of the output of commands. */
  readonly redact?: (text: string) => string;
  /** The repository that all servers reach, and this server's name; absent: none. */
  readonly repository?: {
    readonly address: string;
    readonly server: string;
    /** Its home and agent: ssh and curl find keys and passwords there. */
    readonly env: NodeJS.ProcessEnv;
  };
  /**
   * True (the default) when a sandbox confines the commands of agents; `sandbox` tells whether it
   * works here.
   */
  readonly sandboxed?: boolean;
  readonly sandbox?: () => { readonly ok: boolean; readonly detail: string };
}

const unconfinedAdvice =
  'to run agents as you, in your own folder, set sandbox.mode: off and workspace.mode: shared';

const confinementProblem = ({
  mode,
  sandboxed = true,
  sandbox,
}: WorkspaceOptions): string | null => {
  const held = sandboxed ? sandbox?.() : undefined;
  if (held?.ok === false)
    return `agents cannot be confined on this machine: ${held.detail}; ${unconfinedAdvice}`;
  if (mode === 'worktree' && !hasHandles())
    return `agents cannot be confined on this machine: it has no /proc/self/fd; ${unconfinedAdvice}`;
  return null;
};

/**
 * The commit that an attempt begins with; null: the repository has none, or there is no repository.
 * @throws GitError when no attempt can begin
 */
const findStart = async (
  program: string,
  { projectRoot, folder }: WorkspaceOptions,
  taskId?: TaskId,
): Promise<'no repository' | { readonly head: string | null }> => {
  const repository = await findRepository(program, projectRoot);
  if (repository === null) return 'no repository';
  return withGitDirs(program, repository, join(folder, 'uses'), async (dirs) => {
    await requireBranches(dirs, taskId);
    return { head: await commitOf(dirs, 'HEAD') };
  });
};

const describeWorkspace = async (
  program: string | null,
  options: WorkspaceOptions,
): Promise<string> => {
  if (program === null) return 'runs are refused: git is not installed';
  const copy = (why: string): string => `a copy of the project folder for each attempt (${why})`;
  try {
    const start = await findStart(program, options);
    if (start === 'no repository') return copy('this project is no git repository');
    return start.head === null
      ? copy('this repository has no commit yet')
      : 'a git worktree for each attempt';
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    return `runs are refused: ${error.message}`;
  }
};

/** The first sentence says what is wrong, the rest what to do. */
const asProblem = (path: string, why: string): ProjectProblem => {
  const [what = '', ...advice] = why.split('; ');
  const remedy = advice.join('; ') || 'mend that, then run the task again';
  return { path, problem: `cannot be worked on: ${what}`, remedy };
};

const refusing = (
  workspace: Workspace,
  { projectRoot }: WorkspaceOptions,
  refusal: () => string | null,
  look: (taskId: TaskId) => Promise<unknown>,
): Workspace => ({
  ...workspace,
  refusal,
  problem: async (taskId) => {
    const why = refusal();
    if (why !== null) return asProblem(projectRoot, why);
    try {
      await look(taskId);
      return null;
    } catch (error) {
      if (error instanceof GitError) return asProblem(projectRoot, error.message);
      throw error;
    }
  },
  open: async (...attempt) => {
    const why = refusal();
    if (why !== null) throw new GitError(why);
    return workspace.open(...attempt);
  },
});

const commonOf = (
  program: string,
  { repository, folder }: WorkspaceOptions,
): CommonRepository | null => {
  if (repository === undefined) return null;
  const address = parseWorkAddress(repository.address);
  if (typeof address === 'string') throw new GitError(`workspace.repository: ${address}`);
  const transport =
    address.kind === 'folder'
      ? createFolderTransport(program, address.path, join(folder, 'uses'))
      : createNetworkTransport(program, address, repository.env);
  return { transport, server: repository.server };
};

/** A worktree for each attempt, or, if the user says so, the project's folder for all. */
export const chooseWorkspace = async (options: WorkspaceOptions): Promise<Workspace> => {
  const {
    mode,
    projectRoot,
    folder,
    copies,
    environment,
    filters = [],
    keep = [],
    sandboxed = true,
    trusted,
    userEnv,
    redact,
  } = options;
  const refusal = (): string | null => confinementProblem(options);
  if (mode === 'shared')
    return refusing(
      createSharedWorkspace({ projectRoot, sandboxed }),
      options,
      refusal,
      async () => {},
    );
  const program = findGit(environment['PATH'] ?? '');
  const description = await describeWorkspace(program, options);
  const worktrees = createWorktreeWorkspace({
    program: program ?? '/usr/bin/git',
    projectRoot,
    folder,
    copies,
    keep,
    filters,
    trusted,
    userEnv,
    redact,
    sandboxed,
    description,
    common: program === null ? null : commonOf(program, options),
  });
  return refusing(
    worktrees,
    options,
    () => (program === null ? 'git is not installed; install it' : refusal()),
    async (taskId) => program !== null && findStart(program, options, taskId),
  );
};
