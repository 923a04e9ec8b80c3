import { type EventObject, waitFor } from 'xstate';
import type { AgentEvent, Response } from '../../machines/agent-context.ts';
import type { AgentSnapshot } from '../../machines/agent-machine.ts';
import { hasTime } from '../../machines/agent-selectors.ts';
import { isServiceError, ServiceError } from '../../machines/errors.ts';
import { refuses, refusesResponse } from '../../machines/refusals.ts';
import { attemptKey, type TaskId } from '../../machines/task.ts';
import type { TaskCommand, TaskContext } from '../../machines/task-context.ts';
import type { TaskSnapshot } from '../../machines/task-machine.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { durable } from '../journal/durable-actor.ts';
import { agentChange, taskChange } from '../journal/entries.ts';
import type { Journal } from '../journal/journal.ts';
import { differenceFrom } from '../journal/replay.ts';
import { asTracked, createRestingViews, goesToWait, observationOf, savedSnapshot } from '../journal/snapshots.ts';
import { type AgentState, type TaskView, toView } from '../journal/task-view.ts';
import { shownOf } from '../journal/transition-frames.ts';
import { type SavedActor, StoreError } from '../store/port.ts';
import { createTimerWheel } from './deadlines.ts';
import { createLiveTasks, type Live, type LiveTasksPorts, type TaskMachine } from './task-registry.ts';
import { createObserver } from './tracker-sync.ts';

type Timed = EventObject & { readonly at?: number };

export interface HostPorts extends Omit<LiveTasksPorts, 'setDeadline' | 'observation'> {
  readonly journal: Journal;
  /** Sends an event to an agent, if it is still alive. */
  readonly tellAgent: (key: string, event: AgentEvent) => void;
}

/**
 * The task actors behind one face: they are asked, told and shown through it, and every transition of theirs and of their
 * agents is committed here. It decides nothing about their states.
 */
export interface TaskHost {
  /** @throws task_not_found, already_running, event_not_allowed, or what the chart refused with. */
  ask(taskId: TaskId, command: TaskCommand, requestId?: string): Promise<TaskView>;
  /** Gives a person's answer to the live attempt. @throws event_not_allowed, stale_attempt, invalid_params */
  respond(taskId: TaskId, attempt: number, response: Response): Promise<TaskView | null>;
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
  /** Ends every task actor, to be brought back by `restore`. @throws when what was gathered cannot be committed */
  dropAll(): void;
  stop(): void;
}

const answerMs = 30_000;
const comingMs = 10_000;
const lookMs = 20;

/** A journal that cannot be written is said by name; every other fault stays inside. */
const asAnswer = (cause: unknown): ServiceError =>
  isServiceError(cause)
    ? cause
    : new ServiceError('internal', { detail: cause instanceof StoreError ? cause.message : null }, { cause });

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
  const resting = createRestingViews(store);
  let restored = false;

  const wheel = createTimerWheel(now, (key) => {
    if (key.includes('#')) ports.tellAgent(key, { type: 'DEADLINE', at: now() });
    else tellTask(key as TaskId, now());
  });

  /** The limit of an attempt is its agent's: the task ends it only when the agent did not. */
  const tellTask = (taskId: TaskId, at: number): void => {
    const host = live.get(taskId);
    if (host === null) return;
    const agent = agentIn(host, host.actor.getSnapshot().context.attempt);
    host.actor.send({ type: 'DEADLINE', at, agentHasTime: agent !== null && hasTime(agent, at) });
  };

  const logic: TaskMachine = durable(machine, {
    now,
    commit: (next: TaskSnapshot, event: Timed, previous: TaskSnapshot | null) => {
      if (previous === null) return;
      const host = live.get(next.context.taskId);
      if (host === null) throw new Error(`the actor of ${next.context.taskId} is not registered`);
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

  const live = createLiveTasks(logic, {
    ...ports,
    onCrash: (taskId) => {
      journal.discard(taskId);
      ports.onCrash(taskId);
    },
    setDeadline: wheel.set,
    observation: (tracked) => observationOf(tracked, now()),
  });

  const agentIn = (host: Live, attempt: number): AgentState | null =>
    host.agent?.context.attempt === attempt ? host.agent : null;

  /** Nobody is answered before the state is on disk; one that cannot be is as if it had not been. */
  const makeDurable = (taskId: TaskId, host: Live): void => {
    const { status, error } = host.actor.getSnapshot();
    if (status === 'error') throw error;
    // What it gathered has been given up with it.
    if (live.get(taskId) !== host) throw host.fault;
    try {
      journal.flush();
    } catch (error) {
      live.discard(taskId, host, error);
      throw error;
    }
  };

  const viewOf = (tracked: TrackedTask): TaskView => {
    const host = live.get(tracked.id);
    if (host !== null) {
      const task = host.actor.getSnapshot();
      const changedAt = host.shown?.changedAt ?? 0;
      return toView({ tracked, task, agent: agentIn(host, task.context.attempt), changedAt });
    }
    return resting.viewOf(tracked);
  };

  const isPending = (taskId: TaskId): boolean => live.get(taskId)?.actor.getSnapshot().hasTag('pending') === true;

  /** Whether a task that waits for a person was, or is still to be, brought back, and its agent is not there yet. */
  const isComing = (taskId: TaskId): boolean => {
    const host = live.get(taskId);
    if (host === null) return !restored && store.actor(taskId)?.pending === true;
    if (host.agent === null || !host.actor.getSnapshot().hasTag('live')) return false;
    return host.running === null ? host.agent.tags.has('awaiting') : goesToWait(host.agent);
  };
  /** A question of an earlier server can be answered as soon as the next one can be asked anything. */
  const untilBack = async (taskId: TaskId): Promise<void> => {
    for (let waited = 0; isComing(taskId) && waited < comingMs; waited += lookMs)
      await new Promise((resolve) => setTimeout(resolve, lookMs));
  };

  /** In the order in which they changed last: of those that were submitted at the same time, the first comes first. */
  const inOrder = (tasks: readonly SavedActor[]): readonly SavedActor[] => {
    const latest = new Map(tasks.map(({ taskId }) => [taskId, store.latest(taskId as TaskId, 'snapshot')?.seq ?? 0]));
    return tasks.toSorted((one, other) => (latest.get(one.taskId) ?? 0) - (latest.get(other.taskId) ?? 0));
  };

  const bringBack = async (): Promise<void> => {
    const pending = inOrder(store.tasks('pending'));
    if (pending.length === 0) return;
    const listed = new Map((await tracker.list().catch(() => [])).map((task) => [task.id as string, task]));
    for (const { taskId } of pending) {
      const difference = differenceFrom(store, taskId as TaskId);
      if (difference !== null) ports.log('the journal and a saved state differ', { task_id: taskId, difference });
    }
    // A tracker that is away is not asked about each of them.
    for (const { taskId } of pending)
      await live.revive(taskId as TaskId, listed.get(taskId) ?? live.lastShown(taskId as TaskId));
  };

  return {
    viewOf,
    snapshotOf: (taskId, tracked = null) => {
      const snapshot = live.get(taskId)?.actor.getSnapshot() ?? savedSnapshot(store, taskId);
      return tracked === null ? snapshot : asTracked(snapshot, tracked, now());
    },
    priorityOf: (taskId) => live.get(taskId)?.tracked.priority ?? 2,
    knownTask: (taskId) => live.get(taskId)?.tracked ?? null,
    contextOf: (taskId) => live.get(taskId)?.actor.getSnapshot().context ?? null,

    ask: async (taskId, command, requestId) => {
      try {
        return await live.hold(taskId, async (host) => {
          const event = { ...command, at: now() };
          const refusal = refuses(host.actor.getSnapshot(), host.running, event);
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

    respond: async (taskId, attempt, response) => {
      await untilBack(taskId);
      const host = live.get(taskId);
      const event = { ...response, at: now() };
      const task = host?.actor.getSnapshot() ?? savedSnapshot(store, taskId);
      const refusal = refusesResponse(task, host?.running ?? null, attempt, event);
      if (refusal !== null) throw ServiceError.from(refusal);
      ports.tellAgent(attemptKey(taskId, attempt), event);
      return host === null ? null : viewOf(host.tracked);
    },

    restore: async () => {
      restored = false;
      await bringBack();
      restored = true;
    },

    observe: createObserver({
      tracker,
      store,
      journal,
      now,
      resting,
      live: live.get,
      isPending,
      isArriving: live.isArriving,
      wake: (taskId) => live.hold(taskId, async () => {}),
    }),

    failWith: (taskId, dependency, why) =>
      live.hold(taskId, async ({ actor }) => {
        if (actor.getSnapshot().hasTag('pending')) return;
        actor.send({ type: 'dependency.failed', dependency, why, at: now() });
      }),

    refresh: async (taskId) => {
      const tracked = await tracker.find(taskId);
      const host = live.get(taskId);
      if (tracked !== null && host !== null) host.tracked = tracked;
      return tracked;
    },

    commitAgent: (next, event: Timed, persisted) => {
      const { taskId, attempt, deadlineAt } = next.context;
      const host = live.get(taskId);
      if (host === null) throw new Error(`an agent of ${taskId} moved without its task`);
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

    dropAll: () => {
      journal.flush();
      live.dropAll();
    },

    stop: () => {
      wheel.stop();
      live.stop();
    },
  };
};
