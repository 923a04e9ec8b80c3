import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Merged, Train } from '../../../machines/merge-queue/merge-queue-context.ts';
import type { AttemptInput, TaskId } from '../../../machines/task.ts';
import { commitPatiently } from '../../agent/step-log.ts';
import { changesMade } from '../../agent/steps.ts';
import type { Journal } from '../../journal/journal.ts';
import { withDeadline } from '../../process/deadline.ts';
import type { ActorReads, UsageReads } from '../../store/port.ts';
import { GitError } from '../../workspace/git/git.ts';
import type {
  KeepFolder,
  KeyedAttempt,
  NamedAttempt,
  OpenWorkspace,
  TakenWork,
  Workspace,
  WorkTravel,
} from '../../workspace/port.ts';
import { nameIn } from './task-owner.ts';

/**
 * The step that says which server had the folder of an attempt last. It stays when the attempt is
 * over.
 */
const folderStep = 'folder';
const folderSchema = z.object({
  server: z.string(),
  /** The last change of the agent when that server took the folder without it; else null. */
  lacks: z.string().nullable(),
  /** True until it has the folder: if it dies meanwhile, it takes it again. */
  taking: z.boolean(),
  /** Made for this attempt; only the store has it. */
  key: z.string(),
});

interface HolderPorts {
  readonly store: Pick<ActorReads, 'steps'> & Pick<UsageReads, 'attempts'>;
  readonly journal: Pick<Journal, 'commit'>;
  /** The name of this server. */
  readonly server: string;
}

const look = async (store: Pick<ActorReads, 'steps'>, { taskId, attempt }: NamedAttempt) => {
  const steps = await store.steps(taskId, attempt);
  const intent = steps.find(({ key }) => key === folderStep)?.intent ?? null;
  return {
    holder: intent === null ? null : folderSchema.parse(JSON.parse(intent)),
    keys: steps.map(({ key }) => key),
    lastChange: changesMade(steps).at(-1) ?? null,
  };
};

/** Null when no server had its folder while they shared tasks. */
const keyOf = async (
  store: Pick<ActorReads, 'steps'>,
  attempt: NamedAttempt,
): Promise<string | null> => (await look(store, attempt)).holder?.key ?? null;

/** Removes what an attempt has in the common repository. @returns why it could not, or null */
export const createForgetWork =
  (travel: WorkTravel | null, store: Pick<ActorReads, 'steps'>) =>
  async ({ taskId, attempt }: NamedAttempt): Promise<string | null> => {
    if (travel === null || !travel.hasRepository) return null;
    const key = await keyOf(store, { taskId, attempt });
    return key === null ? null : travel.remove({ taskId, attempt, key });
  };

/** Holders of the folders of attempts, as the store says it. */
const createFolderHolders = ({ store, journal, server }: HolderPorts) => {
  return {
    look: (attempt: NamedAttempt) => look(store, attempt),
    keyOf: (attempt: NamedAttempt) => keyOf(store, attempt),
    hold: async (
      { taskId, attempt }: NamedAttempt,
      state: Omit<z.infer<typeof folderSchema>, 'server'>,
      signal: AbortSignal | undefined,
    ): Promise<void> => {
      const intent = JSON.stringify({ server, ...state });
      const step = { taskId, attempt, key: folderStep, intent, result: null };
      await commitPatiently(journal, { entries: [], step }, signal);
    },
  };
};

type FolderHolders = ReturnType<typeof createFolderHolders>;

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

type Looked = Awaited<ReturnType<FolderHolders['look']>>;

const lacksOf = (taken: TakenWork, { keys, lastChange }: Looked): string | null =>
  taken.has === 'all' || (taken.has === 'step' && hasLastChange(keys, lastChange, taken.step))
    ? null
    : lastChange;

/** A person waits for what is read; other work is shown without it. */
const readMs = 30_000;

/** Gets the work of these tasks from other servers. */
const createFetching =
  (travel: WorkTravel, { store, server }: HolderPorts, { keyOf }: FolderHolders) =>
  async (taskIds: readonly TaskId[], signal?: AbortSignal): Promise<readonly string[]> => {
    const elsewhere: KeyedAttempt[] = [];
    const last = new Map<TaskId, { readonly attempt: number; readonly on: string }>();
    for (const taskId of taskIds) {
      const attempts = await store.attempts(taskId);
      const owner = attempts.at(-1)?.owner ?? null;
      if (owner === null || nameIn(owner) === server) continue;
      for (const { attempt } of attempts) {
        last.set(taskId, { attempt, on: nameIn(owner) });
        const key = travel.hasRepository ? await keyOf({ taskId, attempt }) : null;
        if (key !== null) elsewhere.push({ taskId, attempt, key });
      }
    }
    const absent = elsewhere.length === 0 ? [] : await travel.takeWork(elsewhere, signal);
    const isIn = (some: readonly KeyedAttempt[], taskId: TaskId, attempt: number): boolean =>
      some.some((each) => each.taskId === taskId && each.attempt === attempt);
    return [...last].flatMap(([taskId, { attempt, on }]) =>
      isIn(elsewhere, taskId, attempt) && !isIn(absent, taskId, attempt)
        ? []
        : [
            `${taskId} was done on the server ${on}: what it changed is not in your folder, unless a person merged it.`,
          ],
    );
  };

/** Puts work into the common repository, by the keys of the store. */
const createPutting = (travel: WorkTravel, { keyOf }: FolderHolders) => {
  const keys = new Map<string, string>();
  const keep: KeepFolder = async ({ taskId, attempt }, step, signal) => {
    const name = `${taskId}@${attempt}`;
    const key = keys.get(name) ?? (await keyOf({ taskId, attempt }));
    if (key === null) throw new GitError('the store does not say which server has its folder');
    keys.set(name, key);
    await travel.keep({ taskId, attempt, key }, step, signal);
  };
  /** @returns why it could not */
  const send = async ({
    taskId,
    attempt,
  }: Pick<AttemptInput, 'taskId' | 'attempt'>): Promise<string | null> => {
    keys.delete(`${taskId}@${attempt}`);
    const key = travel.hasRepository ? await keyOf({ taskId, attempt }) : null;
    return key === null ? null : travel.send({ taskId, attempt, key });
  };
  const sendUnsent = async (): Promise<readonly string[]> => {
    const failed: string[] = [];
    for (const attempt of await travel.unsent()) {
      const why = await send(attempt);
      if (why !== null)
        failed.push(`${attempt.taskId}#${attempt.attempt} is not at other servers: ${why}`);
    }
    return failed;
  };
  return { keep, send, sendUnsent };
};

/** Gets the folder of an attempt if another server had it. */
const createEnsuring =
  (travel: WorkTravel, { server }: HolderPorts, { look, hold }: FolderHolders) =>
  async (
    attempt: AttemptInput,
    signal?: AbortSignal,
  ): Promise<Pick<OpenWorkspace, 'taken' | 'lacksWork'> & { readonly isFirst: boolean }> => {
    const looked = await look(attempt);
    const { holder, lastChange } = looked;
    if (holder === null) return { isFirst: true };
    const isFirst = false;
    if (holder.server === server && !holder.taking)
      return holder.lacks !== null && holder.lacks === lastChange
        ? { isFirst, lacksWork: true }
        : { isFirst };
    const { key } = holder;
    // Before the common repository names this server: the one before would be refused there.
    await hold(attempt, { lacks: lastChange, taking: true, key }, signal);
    const taken = await travel.take(attempt, key, signal);
    const lacks = lacksOf(taken, looked);
    await hold(attempt, { lacks, taking: false, key }, signal);
    return { isFirst, taken, lacksWork: lacks === null ? undefined : true };
  };

const bringMs = 10_000;
const askAgainMs = 10_000;
const askedAtMost = 1_000;

/** Many readers of one task ask the common repository once in ten seconds. */
const createBringing = (
  workspace: Pick<Workspace, 'workOf'>,
  fetchWork: ReturnType<typeof createFetching>,
): NonNullable<Workspace['bringWork']> => {
  const asked = new Map<string, { readonly at: number; readonly done: Promise<void> }>();
  return async (taskId, attempt) => {
    if ((await workspace.workOf(taskId, attempt)) !== null) return;
    const name = `${taskId}@${attempt}`;
    const last = asked.get(name);
    if (last !== undefined && performance.now() - last.at < askAgainMs) return last.done;
    const done = fetchWork([taskId], AbortSignal.timeout(bringMs)).then(
      () => {},
      () => {},
    );
    asked.delete(name);
    asked.set(name, { at: performance.now(), done });
    for (const [oldest] of asked) if (asked.size > askedAtMost) asked.delete(oldest);
    return done;
  };
};

const isNothing = (merged: Merged): boolean =>
  merged.status === 'nothing' && merged.commit === undefined;

/**
 * Folders of attempts where several servers share tasks. The steps of an attempt say which server
 * had its folder last; what another one has of it is old, and is replaced (ADR 0118).
 */
export const createHeldFolders = (workspace: Workspace, ports: HolderPorts): Workspace => {
  const { travel } = workspace;
  if (travel === null) return workspace;
  const holders = createFolderHolders(ports);
  const ensure = createEnsuring(travel, ports, holders);
  const fetchWork = createFetching(travel, ports, holders);
  const { keep, send, sendUnsent } = createPutting(travel, holders);

  /** Reads the work of tasks. It may be here though the common repository does not answer. */
  const withWork = async <Result>(
    taskIds: readonly TaskId[],
    read: () => Promise<Result>,
    isAbsent: (result: Result) => boolean = (result) => result === null,
    signal?: AbortSignal,
  ): Promise<Result> => {
    const fetched = withDeadline(readMs, signal, 'the common repository', (limit) =>
      fetchWork(taskIds, limit),
    );
    const problem = await fetched.then(
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
      const key = randomBytes(32).toString('hex');
      if (isFirst) await holders.hold(attempt, { lacks: null, taking: false, key }, signal);
      return { ...opened, ...found, notes: [...opened.notes, ...notes] };
    },
    keep: travel.hasRepository ? keep : null,
    save: async (attempt, title, isComplete = true) => {
      const { lacksWork } = await ensure(attempt);
      if (isComplete && lacksWork === true)
        throw new GitError(
          `what attempt ${attempt.attempt} changed last is on the server that it was on, and not here`,
        );
      const work = await workspace.save(attempt, title, isComplete);
      await send(attempt);
      return work;
    },
    sweep: async (isOver) => [...(await workspace.sweep(isOver)), ...(await sendUnsent())],
    build: async (members, signal, regenerate) => {
      const ids = [...new Set(members.map(({ taskId }) => taskId))];
      const read = () => workspace.build(members, signal, regenerate);
      const isAbsent = ({ ended }: Train) => ended.some(({ merged }) => isNothing(merged));
      return withWork(ids, read, isAbsent, signal);
    },
    land: async (train, signal) => {
      const landed = await workspace.land(train, signal);
      if (landed.status === 'landed') for (const car of train.cars) await send(car);
      return landed;
    },
    bringWork: travel.hasRepository ? createBringing(workspace, fetchWork) : null,
    diff: (taskId, ...rest) => withWork([taskId], () => workspace.diff(taskId, ...rest)),
    push: (taskId, ...rest) => withWork([taskId], () => workspace.push(taskId, ...rest)),
    inspect: (taskId, ...rest) => withWork([taskId], () => workspace.inspect(taskId, ...rest)),
  };
};
