import { z } from 'zod';
import type { AttemptInput, TaskId } from '../../machines/task.ts';
import { commitPatiently } from '../agent/patient-commit.ts';
import { changesMade } from '../agent/steps.ts';
import type { Journal } from '../journal/journal.ts';
import type { ActorReads, UsageReads } from '../store/port.ts';
import { GitError } from '../workspace/git.ts';
import type { OpenWorkspace, TakenWork, Workspace, WorkTravel } from '../workspace/port.ts';
import { nameIn } from './task-owner.ts';

/** The step that says which server had the folder of an attempt last. */
const folderStep = 'folder';
const folderSchema = z.object({
  server: z.string(),
  /** The last change of the agent when that server took the folder without it; else null. */
  lacks: z.string().nullable(),
  /** True until it has the folder: if it dies meanwhile, it takes it again. */
  taking: z.boolean().default(false),
});

export interface HeldFolderPorts {
  readonly store: Pick<ActorReads, 'steps'> & Pick<UsageReads, 'attempts'>;
  readonly journal: Pick<Journal, 'commit'>;
  /** The name of this server. */
  readonly server: string;
}

type AttemptOf = Pick<AttemptInput, 'taskId' | 'attempt'>;

const createHolders = ({ store, journal, server }: HeldFolderPorts) => ({
  look: async ({ taskId, attempt }: AttemptOf) => {
    const steps = await store.steps(taskId, attempt);
    const intent = steps.find(({ key }) => key === folderStep)?.intent ?? null;
    return {
      holder: intent === null ? null : folderSchema.parse(JSON.parse(intent)),
      keys: steps.map(({ key }) => key),
      lastChange: changesMade(steps).at(-1) ?? null,
    };
  },
  hold: async (
    { taskId, attempt }: AttemptOf,
    state: Pick<z.infer<typeof folderSchema>, 'lacks' | 'taking'>,
    signal: AbortSignal | undefined,
  ): Promise<void> => {
    const intent = JSON.stringify({ server, ...state });
    const step = { taskId, attempt, key: folderStep, intent, result: null };
    await commitPatiently(journal, { entries: [], step }, signal);
  },
});

/**
 * True when a folder as `step` left it has the last change. The folder is kept before the result of
 * its step is saved, so it may be ahead of the store. `keys`: the steps, in their order.
 */
export const hasLastChange = (
  keys: readonly string[],
  lastChange: string | null,
  step: string,
): boolean => {
  const last = lastChange === null ? -1 : keys.indexOf(lastChange);
  const key = step.replace(/:part$/, '');
  // A part of a run is older than its end.
  return key === step ? keys.indexOf(key) >= last : keys.indexOf(key) > last;
};

type Looked = Awaited<ReturnType<ReturnType<typeof createHolders>['look']>>;

const lacksOf = (taken: TakenWork, { keys, lastChange }: Looked): string | null =>
  taken.has === 'all' || (taken.has === 'step' && hasLastChange(keys, lastChange, taken.step))
    ? null
    : lastChange;

/** Gets the work of these tasks from other servers. */
const createFetching =
  (travel: WorkTravel, { store, server }: HeldFolderPorts) =>
  async (taskIds: readonly TaskId[], signal?: AbortSignal): Promise<readonly string[]> => {
    const elsewhere: TaskId[] = [];
    const notes: string[] = [];
    for (const taskId of taskIds) {
      const owner = (await store.attempts(taskId)).at(-1)?.owner ?? null;
      if (owner === null || nameIn(owner) === server) continue;
      elsewhere.push(taskId);
      if (!travel.hasRepository)
        notes.push(
          `${taskId} was done on the server ${nameIn(owner)}: what it changed is not in your folder, unless a person merged it.`,
        );
    }
    if (elsewhere.length > 0) await travel.takeWork(elsewhere, signal);
    return notes;
  };

/**
 * Folders of attempts where several servers share tasks. The steps of an attempt say which server
 * had its folder last; what another one has of it is old, and is replaced (ADR 0118).
 */
export const createHeldFolders = (workspace: Workspace, ports: HeldFolderPorts): Workspace => {
  const { travel } = workspace;
  if (travel === null) return workspace;
  const { look, hold } = createHolders(ports);
  const fetchWork = createFetching(travel, ports);

  /** Gets the folder if another server had it. */
  const ensure = async (
    attempt: AttemptInput,
    signal?: AbortSignal,
  ): Promise<Pick<OpenWorkspace, 'taken' | 'lacksWork'> & { readonly isFirst: boolean }> => {
    const looked = await look(attempt);
    const { holder, lastChange } = looked;
    if (holder === null) return { isFirst: true };
    const isFirst = false;
    if (holder.server === ports.server && !holder.taking)
      return holder.lacks !== null && holder.lacks === lastChange
        ? { isFirst, lacksWork: true }
        : { isFirst };
    // Before the common repository names this server: the one before would be refused there.
    await hold(attempt, { lacks: lastChange, taking: true }, signal);
    const taken = await travel.take(attempt, signal);
    const lacks = lacksOf(taken, looked);
    await hold(attempt, { lacks, taking: false }, signal);
    return { isFirst, taken, ...(lacks === null ? {} : { lacksWork: true }) };
  };

  /** Reads the work of a task. It may be here though the common repository does not answer. */
  const withWork = async <Result>(
    taskId: TaskId,
    read: () => Promise<Result>,
    isAbsent: (result: Result) => boolean = (result) => result === null,
    signal?: AbortSignal,
  ): Promise<Result> => {
    const problem = await fetchWork([taskId], signal).then(
      () => null,
      (error: unknown) => ({ error }),
    );
    signal?.throwIfAborted();
    const result = await read();
    if (problem !== null && isAbsent(result)) throw problem.error;
    return result;
  };

  return {
    ...workspace,
    open: async (attempt, after = [], signal) => {
      const { isFirst, ...found } = await ensure(attempt, signal);
      const before = attempt.attempt > 1 ? [...after, attempt.taskId] : after;
      const notes = isFirst ? await fetchWork(before, signal) : [];
      const opened = await workspace.open(attempt, after, signal);
      if (isFirst) await hold(attempt, { lacks: null, taking: false }, signal);
      return { ...opened, ...found, notes: [...opened.notes, ...notes] };
    },
    save: async (attempt, title, isComplete = true) => {
      const { lacksWork } = await ensure(attempt);
      if (isComplete && lacksWork === true)
        throw new GitError(
          `what attempt ${attempt.attempt} changed last is on the server that it was on, and not here`,
        );
      return workspace.save(attempt, title, isComplete);
    },
    merge: (taskId, attempt, mode, title, signal) =>
      withWork(
        taskId,
        () => workspace.merge(taskId, attempt, mode, title, signal),
        ({ status }) => status === 'nothing',
        signal,
      ),
    diff: (taskId, ...rest) => withWork(taskId, () => workspace.diff(taskId, ...rest)),
    inspect: (taskId, ...rest) => withWork(taskId, () => workspace.inspect(taskId, ...rest)),
  };
};
