import { type ActorRefFrom, createActor, type InspectionEvent } from 'xstate';
import type { AgentSnapshot } from '../../machines/agent-machine.ts';
import { ServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { TaskId } from '../../machines/task.ts';
import type { TaskEvent } from '../../machines/task-context.ts';
import type { taskMachine } from '../../machines/task-machine.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { persistedSnapshot, readSaved } from '../journal/snapshots.ts';
import type { AgentState } from '../journal/task-view.ts';
import { type Shown, shownIn, trackedFrom } from '../journal/transition-frames.ts';
import type { Store } from '../store/port.ts';
import type { Tracker } from '../tracker/port.ts';
import { createFamily } from './actor-system.ts';
import { createTimerWheel } from './deadlines.ts';

export type TaskMachine = typeof taskMachine;

/** A task whose actor is alive. */
export interface Live {
  readonly actor: ActorRefFrom<TaskMachine>;
  tracked: TrackedTask;
  agent: AgentState | null;
  /** The snapshot of the agent that runs in this process. */
  running: AgentSnapshot | null;
  /** What was shown of it last. */
  shown: Shown | null;
  requestId: string | null;
  /** Why it was given up, for those who still wait for its answer. */
  fault: unknown;
}

export interface LiveTasksPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  /** Who looks on, as an option of XState's actors. */
  readonly inspected: { readonly inspect?: (event: InspectionEvent) => void };
  /** Resolves when nothing that an actor of the task began is at work any more. @throws when it does not end */
  readonly whenSilent: (taskId: TaskId) => Promise<void>;
  /** A task actor ended in error: whatever it held must be given back, and what was gathered of it is void. */
  readonly onCrash: (taskId: TaskId) => void;
  readonly setDeadline: (taskId: TaskId, at: number | null) => void;
  /** What an actor must be told that comes to life at rest. */
  readonly observation: (tracked: TrackedTask) => TaskEvent;
}

/**
 * The task actors that are alive, found by id: one for every task that is pending, and one for a task that somebody asks
 * something. They are restored from what was committed, and let go when nobody needs them.
 */
export interface LiveTasks {
  get(taskId: TaskId): Live | null;
  isArriving(taskId: TaskId): boolean;
  /** The actor of a task stays alive while somebody works with it. @throws task_not_found; internal when stopping */
  hold<Result>(taskId: TaskId, work: (task: Live) => Promise<Result>): Promise<Result>;
  /** As the tracker had it when it was shown last; null when it never was. */
  lastShown(taskId: TaskId): TrackedTask | null;
  /** Brings a pending task back to life; what cannot be restored is tried again. */
  revive(taskId: TaskId, known?: TrackedTask | null): Promise<void>;
  /** Ends every actor; what is pending is revived from what was committed. */
  dropAll(): void;
  /** Ends an actor whose state could not be committed: it comes back as it was before. */
  discard(taskId: TaskId, task: Live, error: unknown): void;
  stop(): void;
}

const reviveMs = 5_000;
const reviveAtMostMs = 10 * 60_000;

const stopping = (): ServiceError =>
  new ServiceError('internal', { detail: 'the server is stopping; ask again when it is back' });

const interrupted = (): ServiceError =>
  new ServiceError('internal', { detail: 'the task was taken up again meanwhile; ask again' });

/** It will be tried again; who asks now is told why there is no answer. */
const stillAtWork = (cause: unknown): never => {
  const detail = `${messageOf(cause)}; ask again later`;
  throw new ServiceError('internal', { detail }, { cause });
};

export const createLiveTasks = (logic: TaskMachine, ports: LiveTasksPorts): LiveTasks => {
  const { tracker, store, now } = ports;
  const family = createFamily(ports.inspected);
  const live = new Map<TaskId, Live>();
  const arriving = new Map<TaskId, Promise<Live>>();
  /** How many callers wait for an answer of a task; its actor stays while there is one. */
  const asking = new Map<TaskId, number>();
  const reviving = new Map<TaskId, number>();
  const wheel = createTimerWheel(now, (taskId) => void revive(taskId as TaskId));
  let stopped = false;

  const evict = (taskId: TaskId, task: Live): void => {
    const snapshot = task.actor.getSnapshot();
    if (live.get(taskId) !== task || asking.has(taskId) || snapshot.hasTag('pending')) return;
    live.delete(taskId);
    family.stop(task.actor);
  };

  const crashed = (taskId: TaskId, task: Live, error: unknown): void => {
    ports.log('the actor of a task broke; it is restored from what was committed last', { task_id: taskId, error });
    if (live.get(taskId) === task) live.delete(taskId);
    task.fault = error;
    ports.onCrash(taskId);
    reviveLater(taskId);
  };

  /** The pause doubles with every try, so that a task that cannot be restored costs ever less. */
  const reviveLater = (taskId: TaskId): void => {
    if (stopped) return;
    const tries = reviving.get(taskId) ?? 0;
    reviving.set(taskId, tries + 1);
    wheel.set(taskId, now() + Math.min(reviveMs * 2 ** tries, reviveAtMostMs));
  };

  const lastShown = (taskId: TaskId): TrackedTask | null => {
    const latest = store.latest(taskId, 'snapshot');
    return latest === null ? null : trackedFrom(shownIn(latest.data), tracker.actor);
  };

  /** What is at work goes on also while the tracker is away, and when it has lost the task. */
  const lookFor = async (taskId: TaskId, atWork: boolean): Promise<TrackedTask | null> => {
    const last = atWork ? lastShown(taskId) : null;
    return last === null ? tracker.find(taskId) : ((await tracker.find(taskId).catch(() => null)) ?? last);
  };

  const enliven = async (taskId: TaskId, known: TrackedTask | null): Promise<Live> => {
    const atWork = store.actor(taskId)?.pending === true;
    const tracked = known ?? (await lookFor(taskId, atWork));
    // An actor that broke left its work to be stopped; the next one must not begin beside it.
    if (atWork) await ports.whenSilent(taskId).catch(stillAtWork);
    if (tracked === null) throw new ServiceError('task_not_found', { task_id: taskId });
    if (stopped) throw stopping();
    const saved = store.actor(taskId);
    const actor = createActor(logic, {
      id: taskId,
      parent: family.parent,
      input: { taskId },
      ...(saved === null ? {} : { snapshot: persistedSnapshot(saved) }),
    });
    const rows = saved === null ? null : readSaved(store, saved);
    const task: Live = {
      actor,
      tracked,
      agent: rows?.agent ?? null,
      running: null,
      shown: null,
      requestId: null,
      fault: null,
    };
    live.set(taskId, task);
    actor.subscribe({
      next: () => queueMicrotask(() => evict(taskId, task)),
      error: (error) => crashed(taskId, task, error),
    });
    if (rows !== null && saved?.pending === true) ports.setDeadline(taskId, rows.task.context.deadlineAt);
    actor.start();
    if (saved?.pending !== true) actor.send(ports.observation(tracked));
    return task;
  };

  const hydrate = (taskId: TaskId, known: TrackedTask | null = null): Promise<Live> => {
    const present = live.get(taskId);
    if (present !== undefined) return Promise.resolve(present);
    const coming = arriving.get(taskId) ?? enliven(taskId, known).finally(() => arriving.delete(taskId));
    arriving.set(taskId, coming);
    return coming;
  };

  const revive = async (taskId: TaskId, known: TrackedTask | null = null): Promise<void> => {
    if (stopped) return;
    try {
      await hydrate(taskId, known);
      reviving.delete(taskId);
    } catch (error) {
      ports.log('a pending task could not be restored; it is tried again', { task_id: taskId, error });
      reviveLater(taskId);
    }
  };

  const dropAll = (): void => {
    const all = [...live.values()];
    live.clear();
    for (const task of all) {
      task.fault = stopped ? stopping() : interrupted();
      family.stop(task.actor);
    }
  };

  return {
    get: (taskId) => live.get(taskId) ?? null,
    isArriving: (taskId) => arriving.has(taskId),
    lastShown,
    revive,

    hold: async (taskId, work) => {
      asking.set(taskId, (asking.get(taskId) ?? 0) + 1);
      try {
        const task = await hydrate(taskId);
        const { status, error } = task.actor.getSnapshot();
        if (status === 'error') throw error;
        if (stopped) throw stopping();
        return await work(task);
      } finally {
        const others = (asking.get(taskId) ?? 1) - 1;
        if (others === 0) asking.delete(taskId);
        else asking.set(taskId, others);
        const task = live.get(taskId);
        if (task !== undefined) evict(taskId, task);
      }
    },

    discard: (taskId, task, error) => {
      crashed(taskId, task, error);
      family.stop(task.actor);
    },

    dropAll,

    stop: () => {
      stopped = true;
      wheel.stop();
      dropAll();
    },
  };
};
