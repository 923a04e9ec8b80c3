import {
  type ActorRefFrom,
  createActor,
  type EventObject,
  type InspectionEvent,
  type SnapshotFrom,
  transition,
  waitFor,
} from 'xstate';
import type { AgentEvent, Response } from '../machines/agent-context.ts';
import type { agentMachine } from '../machines/agent-machine.ts';
import { isServiceError, ServiceError } from '../machines/errors.ts';
import { refuses, refusesResponse } from '../machines/refusals.ts';
import { attemptKey, type TaskId } from '../machines/task.ts';
import type { ObservedStatus, TaskCommand, TaskContext } from '../machines/task-context.ts';
import type { taskMachine } from '../machines/task-machine.ts';
import { type AgentState, type TaskView, toView } from '../machines/task-view.ts';
import { holderOf, statusInTracker, type TrackedTask } from '../machines/tracked-task.ts';
import { agentChange, taskChange } from './changes.ts';
import { durable } from './durable.ts';
import { createFamily } from './family.ts';
import type { Journal } from './journal.ts';
import { differenceFrom } from './replay.ts';
import { createRestingViews, persistedSnapshot, readSaved, savedSnapshot } from './saved-state.ts';
import { type Store, StoreError } from './store/port.ts';
import { createTimerWheel } from './timer-wheel.ts';
import type { Tracker } from './tracker/port.ts';
import { observedEntries, type Shown, sameToPeople, shownIn, shownOf, trackedFrom } from './transitions.ts';

type TaskMachine = typeof taskMachine;
type TaskSnapshot = SnapshotFrom<TaskMachine>;
type AgentSnapshot = SnapshotFrom<typeof agentMachine>;
type Timed = EventObject & { readonly at?: number };

export interface HostPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  readonly journal: Journal;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  /** Who looks on, as an option of XState's actors. */
  readonly inspected: { readonly inspect?: (event: InspectionEvent) => void };
  /** Sends an event to an agent, if it is still alive. */
  readonly tellAgent: (key: string, event: AgentEvent) => void;
  /** Resolves when nothing that an actor of the task began is at work any more. @throws when it does not end */
  readonly whenSilent: (taskId: TaskId) => Promise<void>;
  /** A task actor ended in error: whatever it held must be given back. */
  readonly onCrash: (taskId: TaskId) => void;
}

interface Live {
  readonly actor: ActorRefFrom<TaskMachine>;
  tracked: TrackedTask;
  agent: AgentState | null;
  /** The snapshot of the agent that runs in this process. */
  running: AgentSnapshot | null;
  /** What was shown of it last. */
  shown: Shown | null;
  requestId: string | null;
}

/**
 * The task actors that are alive: every task that is pending has one, found by id in a plain registry; a task at rest is
 * a row. It restores, commits, shows and evicts them, and decides nothing about their states.
 */
export interface TaskHost {
  /** @throws task_not_found, already_running, event_not_allowed, or what the chart refused with. */
  ask(taskId: TaskId, command: TaskCommand, requestId?: string): Promise<TaskView>;
  /** Gives a person's answer to the live attempt. @throws event_not_allowed, stale_attempt, invalid_params */
  respond(taskId: TaskId, attempt: number, response: Response): TaskView | null;
  /** What people see of a task that the tracker holds, live or not. */
  viewOf(tracked: TrackedTask): TaskView;
  /** Brings every pending task back to life, in a new process or after its actor broke. */
  restore(): Promise<void>;
  /**
   * Takes in what the watch saw of a task in the tracker: people are shown what changed of a task at rest; a task that
   * runs is looked at again, and told when somebody else closed or took it.
   * @returns false when it is at work, so that what is news of it will be known only later
   */
  observe(seen: TrackedTask): Promise<boolean>;
  /** Tells a task at rest that one it depends on has failed. */
  failWith(taskId: TaskId, dependency: TaskId, why: string): Promise<void>;
  refresh(taskId: TaskId): Promise<TrackedTask | null>;
  contextOf(taskId: TaskId): TaskContext | null;
  /** A live task as the tracker had it last, for when the tracker is away. */
  knownTask(taskId: TaskId): TrackedTask | null;
  priorityOf(taskId: TaskId): number;
  /** The state of a task, live or not; one at rest follows what the tracker says of it, when that is given. */
  snapshotOf(taskId: TaskId, tracked?: TrackedTask | null): TaskSnapshot;
  /** Called by the durable agent machine for every transition of an agent. */
  commitAgent(next: AgentSnapshot, event: EventObject, persisted: () => unknown): void;
  stop(): void;
}

const answerMs = 30_000;
const reviveMs = 5_000;
const reviveAtMostMs = 10 * 60_000;

const observedStatus = (tracked: TrackedTask): ObservedStatus => {
  const status = statusInTracker(tracked);
  if (status === 'queued') return 'open';
  return status === 'complete' || status === 'failed' || status === 'cancelled' ? status : 'elsewhere';
};

/** A journal that cannot be written is said by name; every other fault stays inside. */
const asAnswer = (cause: unknown): ServiceError =>
  isServiceError(cause)
    ? cause
    : new ServiceError('internal', { detail: cause instanceof StoreError ? cause.message : null }, { cause });

const stopping = (): ServiceError =>
  new ServiceError('internal', { detail: 'the server is stopping; ask again when it is back' });

/** The snapshot in which a request is answered; a chart that takes longer is answered with where it is. */
const answerOf = async (actor: Live['actor']): Promise<TaskSnapshot> => {
  const answered = (snapshot: TaskSnapshot): boolean => !snapshot.hasTag('answering');
  await waitFor(actor, answered, { timeout: answerMs }).catch(() => {});
  const snapshot = actor.getSnapshot();
  if (snapshot.status === 'error') throw asAnswer(snapshot.error);
  return snapshot;
};

export const createTaskHost = (machine: TaskMachine, ports: HostPorts): TaskHost => {
  const { tracker, store, journal, now } = ports;
  const family = createFamily(ports.inspected);
  const live = new Map<TaskId, Live>();
  const arriving = new Map<TaskId, Promise<Live>>();
  /** How many callers wait for an answer of a task; its actor stays while there is one. */
  const asking = new Map<TaskId, number>();
  const reviving = new Map<TaskId, number>();
  const resting = createRestingViews(store);
  let stopped = false;

  const wheel = createTimerWheel(now, (key) => {
    if (key.startsWith('revive:')) void revive(key.slice('revive:'.length) as TaskId);
    else if (key.includes('#')) ports.tellAgent(key, { type: 'DEADLINE', at: now() });
    else live.get(key as TaskId)?.actor.send({ type: 'DEADLINE', at: now() });
  });

  const logic: TaskMachine = durable(machine, {
    now,
    commit: (next: TaskSnapshot, event: Timed, previous: TaskSnapshot | null) => {
      if (previous === null) return;
      const host = live.get(next.context.taskId);
      if (host === undefined) throw new Error(`the actor of ${next.context.taskId} is not registered`);
      commitTask(host, next, event, previous);
    },
  });

  const commitTask = (host: Live, next: TaskSnapshot, event: Timed, previous: TaskSnapshot): void => {
    const at = event.at ?? now();
    const { taskId, attempt, deadlineAt } = next.context;
    resting.forget(taskId);
    const view = toView({ tracked: host.tracked, task: next, agent: agentIn(host, attempt), changedAt: at });
    const change = taskChange({
      next,
      cause: event,
      at,
      before: host.shown,
      after: view,
      persisted: logic.getPersistedSnapshot(next),
      settledNow: next.hasTag('settled') && !previous.hasTag('settled'),
    });
    // Nothing in the world follows from a quiet state, and nobody is answered before it is committed.
    const keep = next.hasTag('quiet') ? journal.gather : journal.commit;
    keep(host.requestId === null ? change : { ...change, request: { id: host.requestId, taskId } });
    host.shown = shownOf(view);
    host.requestId = null;
    wheel.set(taskId, next.hasTag('pending') ? deadlineAt : null);
  };

  const observation = (tracked: TrackedTask) =>
    ({ type: 'tracker.observed', status: observedStatus(tracked), at: now() }) as const;

  const agentIn = (host: Live, attempt: number): AgentState | null =>
    host.agent?.context.attempt === attempt ? host.agent : null;

  const evict = (taskId: TaskId, host: Live): void => {
    const snapshot = host.actor.getSnapshot();
    if (live.get(taskId) !== host || asking.has(taskId) || snapshot.hasTag('pending')) return;
    live.delete(taskId);
    family.stop(host.actor);
  };

  const crashed = (taskId: TaskId, host: Live, error: unknown): void => {
    ports.log('the actor of a task broke; it is restored from what was committed last', { task_id: taskId, error });
    if (live.get(taskId) === host) live.delete(taskId);
    journal.discard(taskId);
    ports.onCrash(taskId);
    reviveLater(taskId);
  };

  /** Nobody is answered before the state is on disk; one that cannot be is as if it had not been. */
  const makeDurable = (taskId: TaskId, host: Live): void => {
    try {
      journal.flush();
    } catch (error) {
      crashed(taskId, host, error);
      family.stop(host.actor);
      throw error;
    }
  };

  /** The pause doubles with every try, so that a task that cannot be restored costs ever less. */
  const reviveLater = (taskId: TaskId): void => {
    if (stopped) return;
    const tries = reviving.get(taskId) ?? 0;
    reviving.set(taskId, tries + 1);
    wheel.set(`revive:${taskId}`, now() + Math.min(reviveMs * 2 ** tries, reviveAtMostMs));
  };

  /** What is at work goes on also while the tracker is away, and when it has lost the task. */
  const lookFor = async (taskId: TaskId, isPending: boolean): Promise<TrackedTask | null> => {
    const latest = isPending ? store.latest(taskId, 'snapshot') : null;
    if (latest === null) return tracker.find(taskId);
    return (await tracker.find(taskId).catch(() => null)) ?? trackedFrom(shownIn(latest.data), tracker.actor);
  };

  const enliven = async (taskId: TaskId, listed?: TrackedTask): Promise<Live> => {
    const isPending = store.actor(taskId)?.pending === true;
    const tracked = listed ?? (await lookFor(taskId, isPending));
    // An actor that broke left its work to be stopped; the next one must not begin beside it.
    if (isPending) await ports.whenSilent(taskId);
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
    const host: Live = { actor, tracked, agent: rows?.agent ?? null, running: null, shown: null, requestId: null };
    live.set(taskId, host);
    actor.subscribe({
      next: () => queueMicrotask(() => evict(taskId, host)),
      error: (error) => crashed(taskId, host, error),
    });
    if (rows !== null && saved?.pending === true) wheel.set(taskId, rows.task.context.deadlineAt);
    actor.start();
    if (saved?.pending !== true) actor.send(observation(tracked));
    return host;
  };

  const hydrate = (taskId: TaskId, listed?: TrackedTask): Promise<Live> => {
    const present = live.get(taskId);
    if (present !== undefined) return Promise.resolve(present);
    const coming = arriving.get(taskId) ?? enliven(taskId, listed).finally(() => arriving.delete(taskId));
    arriving.set(taskId, coming);
    return coming;
  };

  const revive = async (taskId: TaskId, listed?: TrackedTask): Promise<void> => {
    if (stopped) return;
    try {
      await hydrate(taskId, listed);
      reviving.delete(taskId);
    } catch (error) {
      ports.log('a pending task could not be restored; it is tried again', { task_id: taskId, error });
      reviveLater(taskId);
    }
  };

  /** The actor of a task stays alive while somebody works with it. */
  const held = async <Result>(taskId: TaskId, work: (host: Live) => Promise<Result>): Promise<Result> => {
    asking.set(taskId, (asking.get(taskId) ?? 0) + 1);
    try {
      const host = await hydrate(taskId);
      const { status, error } = host.actor.getSnapshot();
      if (status === 'error') throw asAnswer(error);
      if (stopped) throw stopping();
      return await work(host);
    } finally {
      const others = (asking.get(taskId) ?? 1) - 1;
      if (others === 0) asking.delete(taskId);
      else asking.set(taskId, others);
      const host = live.get(taskId);
      if (host !== undefined) evict(taskId, host);
    }
  };

  const viewOf = (tracked: TrackedTask): TaskView => {
    const host = live.get(tracked.id);
    if (host !== undefined) {
      const task = host.actor.getSnapshot();
      const changedAt = host.shown?.changedAt ?? 0;
      return toView({ tracked, task, agent: agentIn(host, task.context.attempt), changedAt });
    }
    return resting.viewOf(tracked);
  };

  /** Somebody closed a task of which nothing runs here, maybe before a run of it could begin: who waits is told its end. */
  const isOvertaken = ({ id, status }: TrackedTask): boolean =>
    status === 'closed' && store.actor(id) !== null && savedSnapshot(store, id).hasTag('resting');

  /** Whether a task at rest would now be shown as another one than it was last. */
  const isNews = (seen: TrackedTask): boolean => {
    const latest = store.latest(seen.id, 'snapshot');
    return latest === null || !sameToPeople(shownIn(latest.data), resting.viewOf(seen));
  };

  /** A task at rest that changed in the tracker: a frame for who looks on, if it shows anything new. */
  const showResting = async (seen: TrackedTask): Promise<void> => {
    if (!isNews(seen)) return;
    // What was listed may be older than what we wrote since.
    const fresh = await tracker.find(seen.id);
    if (fresh === null || isPending(seen.id) || !isNews(fresh)) return;
    journal.commit({ entries: observedEntries(resting.viewOf(fresh), now()) });
  };

  const isPending = (taskId: TaskId): boolean => live.get(taskId)?.actor.getSnapshot().hasTag('pending') === true;

  return {
    viewOf,
    snapshotOf: (taskId, tracked = null) => {
      const snapshot = live.get(taskId)?.actor.getSnapshot() ?? savedSnapshot(store, taskId);
      if (tracked === null || snapshot.hasTag('pending')) return snapshot;
      return transition(machine, snapshot, observation(tracked))[0];
    },
    priorityOf: (taskId) => live.get(taskId)?.tracked.priority ?? 2,
    knownTask: (taskId) => live.get(taskId)?.tracked ?? null,
    contextOf: (taskId) => live.get(taskId)?.actor.getSnapshot().context ?? null,

    ask: async (taskId, command, requestId) => {
      try {
        return await held(taskId, async (host) => {
          const event = { ...command, at: now() };
          const refusal = refuses(host.actor.getSnapshot(), event);
          if (refusal !== null) throw ServiceError.from(refusal);
          host.requestId = requestId ?? null;
          host.actor.send(event);
          const answer = await answerOf(host.actor);
          makeDurable(taskId, host);
          if (answer.hasTag('refused') && answer.context.refusal !== null)
            throw ServiceError.from(answer.context.refusal);
          return viewOf(host.tracked);
        });
      } catch (error) {
        throw asAnswer(error);
      }
    },

    respond: (taskId, attempt, response) => {
      const host = live.get(taskId);
      const event = { ...response, at: now() };
      const task = host?.actor.getSnapshot() ?? savedSnapshot(store, taskId);
      const refusal = refusesResponse(task, host?.running ?? null, attempt, event);
      if (refusal !== null) throw ServiceError.from(refusal);
      ports.tellAgent(attemptKey(taskId, attempt), event);
      return host === undefined ? null : viewOf(host.tracked);
    },

    restore: async () => {
      const pending = store.tasks('pending');
      if (pending.length === 0) return;
      const listed = new Map((await tracker.list().catch(() => [])).map((task) => [task.id as string, task]));
      for (const { taskId } of pending) {
        const difference = differenceFrom(store, taskId as TaskId);
        if (difference !== null) ports.log('the journal and a saved state differ', { task_id: taskId, difference });
      }
      for (const { taskId } of pending) await revive(taskId as TaskId, listed.get(taskId));
    },

    observe: async (seen) => {
      const host = live.get(seen.id);
      if (host === undefined || !isPending(seen.id)) {
        if (host === undefined && !arriving.has(seen.id) && isOvertaken(seen)) await held(seen.id, async () => {});
        else await showResting(seen);
        return !isPending(seen.id);
      }
      // What was listed may be older than what we wrote since: only a new look counts.
      const suspicious = seen.status === 'closed' || holderOf(seen, tracker.actor) !== null;
      if (!suspicious) return false;
      const { attempt } = host.actor.getSnapshot().context;
      const now_ = await tracker.find(seen.id);
      if (now_ === null || live.get(seen.id) !== host || host.actor.getSnapshot().context.attempt !== attempt)
        return false;
      const holder = holderOf(now_, tracker.actor);
      const status = now_.status === 'closed' ? 'complete' : 'elsewhere';
      if (now_.status !== 'closed' && holder === null) return false;
      host.tracked = now_;
      host.actor.send({ type: 'tracker.observed', status, holder, at: now() });
      return false;
    },

    failWith: (taskId, dependency, why) =>
      held(taskId, async ({ actor }) => {
        if (actor.getSnapshot().hasTag('pending')) return;
        actor.send({ type: 'dependency.failed', dependency, why, at: now() });
      }),

    refresh: async (taskId) => {
      const tracked = await tracker.find(taskId);
      const host = live.get(taskId);
      if (tracked !== null && host !== undefined) host.tracked = tracked;
      return tracked;
    },

    commitAgent: (next, event: Timed, persisted) => {
      const { taskId, attempt, deadlineAt } = next.context;
      const host = live.get(taskId);
      if (host === undefined) throw new Error(`an agent of ${taskId} moved without its task`);
      const at = event.at ?? now();
      resting.forget(taskId);
      const task = host.actor.getSnapshot();
      const after = toView({ tracked: host.tracked, task, agent: next, changedAt: at });
      journal.commit(agentChange({ next, cause: event, at, before: host.shown, after, persisted: persisted() }));
      host.agent = next;
      host.running = next.status === 'active' ? next : null;
      host.shown = shownOf(after);
      wheel.set(attemptKey(taskId, attempt), next.status === 'active' ? deadlineAt : null);
    },

    stop: () => {
      stopped = true;
      wheel.stop();
      for (const { actor } of live.values()) family.stop(actor);
      live.clear();
    },
  };
};
