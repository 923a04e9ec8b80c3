import { type AnyActorRef, type EventObject, waitFor } from 'xstate';
import type { Response } from '../../machines/agent-context.ts';
import type { AgentSnapshot } from '../../machines/agent-machine.ts';
import { hasTime } from '../../machines/agent-selectors.ts';
import { isServiceError, ServiceError } from '../../machines/errors.ts';
import { refuses, refusesResponse } from '../../machines/refusals.ts';
import { attemptKey, type TaskId } from '../../machines/task.ts';
import type { TaskCommand } from '../../machines/task-context.ts';
import type { TaskMachine, TaskSnapshot } from '../../machines/task-machine.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { transitionDeadline } from '../journal/commit-answer.ts';
import { durable } from '../journal/durable-actor.ts';
import type { Journal } from '../journal/journal.ts';
import { ActorEndedError, sendRequest } from '../journal/requests.ts';
import { createRestingViews, observationOf, willAskAgain } from '../journal/snapshots.ts';
import type { TaskView } from '../journal/task-view.ts';
import { type CommitAnswer, type SavedActor, StoreError } from '../store/port.ts';
import { createTimerWheel, type TimerWheel } from './deadlines.ts';
import type { LiveTask } from './live-tasks.ts';
import { createTransitionRecorder } from './persist-transitions.ts';
import type { PreparedChanges } from './prepared-changes.ts';
import { compareWithJournals, restoreTasks } from './restore-tasks.ts';
import { createTaskRegistry, type TaskRegistry, type TaskRegistryPorts } from './task-registry.ts';
import { agentOfAttempt, createTaskViews, type TaskViews } from './task-views.ts';
import { createObserver } from './tracker-sync.ts';

export interface TaskCommandPorts extends Omit<TaskRegistryPorts, 'setDeadline' | 'observation'> {
  readonly journal: Journal;
  readonly prepared: PreparedChanges;
  /** The actor of an agent, if it is alive. */
  readonly agentActor: (key: string) => AnyActorRef | undefined;
}

/** Commands to task actors. Their states decide; every transition is committed before its effects. */
export interface TaskCommands extends TaskViews {
  /** @throws task_not_found, already_running, event_not_allowed, or the refusal of the chart */
  ask(taskId: TaskId, command: TaskCommand, requestId?: string): Promise<TaskView>;
  /** Gives a person's answer to the live attempt. @throws event_not_allowed, stale_attempt, invalid_params */
  respond(taskId: TaskId, attempt: number, response: Response): Promise<TaskView | null>;
  /** Fails a task at rest whose dependency failed. */
  failWith(taskId: TaskId, dependency: TaskId, why: string): Promise<void>;
  /**
   * Takes a change in the tracker: shows it for a task at rest; for a task at work, reads the
   * tracker again and tells the task when somebody closed or took it.
   * @returns false when the task is at work and must be observed again
   */
  observe(seen: TrackedTask): Promise<boolean>;
  refresh(taskId: TaskId): Promise<TrackedTask | null>;
  /** Starts the actors of all pending tasks. */
  restore(): Promise<void>;
  commitAgent(next: AgentSnapshot, cause: EventObject, persisted: unknown): CommitAnswer | Promise<CommitAnswer>;
  /** The saved agent of an attempt, for a new actor. */
  takeOverAgent(taskId: TaskId, attempt: number): Promise<SavedActor | null>;
  /** Stops every task actor; `restore` starts them again. @throws when gathered changes cannot be committed */
  dropAll(): Promise<void>;
  stop(): void;
}

const answerMs = 30_000;
const longestWaitForAgentMs = 10_000;
const pollMs = 20;

/** Shows the message of a StoreError; other unknown errors stay internal. */
const asServiceError = (cause: unknown): ServiceError =>
  isServiceError(cause)
    ? cause
    : new ServiceError('internal', { detail: cause instanceof StoreError ? cause.message : null }, { cause });

/** The snapshot after the request was answered, or after 30 s. */
const answerOf = async (actor: LiveTask['actor']): Promise<TaskSnapshot> => {
  const isAnswered = (snapshot: TaskSnapshot): boolean => !snapshot.hasTag('answering');
  await waitFor(actor, isAnswered, { timeout: answerMs }).catch(() => {});
  const snapshot = actor.getSnapshot();
  if (snapshot.status === 'error') throw asServiceError(snapshot.error);
  return snapshot;
};

/** Deadlines of tasks and agents by key. The task ends an attempt at its limit only when the agent did not. */
const createDeadlines = (
  { now, agentActor }: TaskCommandPorts,
  live: (taskId: TaskId) => LiveTask | null,
): TimerWheel =>
  createTimerWheel(now, (key) => {
    const at = now();
    if (key.includes('#')) return agentActor(key)?.send({ type: 'DEADLINE', at });
    const task = live(key as TaskId);
    if (task === null) return;
    const agent = agentOfAttempt(task, task.actor.getSnapshot().context.attempt);
    task.actor.send({ type: 'DEADLINE', at, agentHasTime: agent !== null && hasTime(agent, at) });
  });

const createAsk =
  ({ journal, now }: TaskCommandPorts, registry: TaskRegistry, views: TaskViews): TaskCommands['ask'] =>
  async (taskId, command, requestId) => {
    /** Commits before the answer. When that fails, the actor is restored from the state before. */
    const commitGathered = async (task: LiveTask): Promise<void> => {
      const requireSame = (): void => {
        if (registry.get(taskId) !== task) throw task.fault;
      };
      requireSame();
      try {
        await journal.flush();
      } catch (error) {
        registry.discard(taskId, task, error);
        throw error;
      }
      requireSame();
    };
    try {
      return await registry.use(taskId, async (task) => {
        const event = { ...command, at: now() };
        const requireAllowed = (snapshot: TaskSnapshot): void => {
          const refusal = refuses(snapshot, task.running, event);
          if (refusal !== null) throw ServiceError.from(refusal);
        };
        const request = { requestId: requestId ?? null, requireAllowed, answer: () => {} };
        await sendRequest(task.actor, event, request).catch((error) => {
          throw task.fault ?? error;
        });
        const answer = await answerOf(task.actor);
        await commitGathered(task);
        if (answer.hasTag('refused') && answer.context.refusal !== null)
          throw ServiceError.from(answer.context.refusal);
        return views.viewOf(task.tracked);
      });
    } catch (error) {
      throw asServiceError(error);
    }
  };

const createRespond = (
  { store, now, agentActor }: TaskCommandPorts,
  registry: TaskRegistry,
  views: TaskViews,
  isRestored: () => boolean,
): TaskCommands['respond'] => {
  /** True while a question of an earlier server exists and its agent is not restored yet. */
  const isAgentComing = (taskId: TaskId): boolean => {
    const task = registry.get(taskId);
    if (task === null) return !isRestored() && store.actor(taskId)?.pending === true;
    if (task.agent === null || !task.actor.getSnapshot().hasTag('live')) return false;
    return task.running === null ? task.agent.tags.has('awaiting') : willAskAgain(task.agent);
  };
  const waitForAgent = async (taskId: TaskId): Promise<void> => {
    for (let waited = 0; isAgentComing(taskId) && waited < longestWaitForAgentMs; waited += pollMs)
      await new Promise((resolve) => setTimeout(resolve, pollMs));
  };
  return async (taskId, attempt, response) => {
    await waitForAgent(taskId);
    const task = registry.get(taskId);
    const event = { ...response, at: now() };
    const requireAllowed = (agent: AgentSnapshot | null): void => {
      const refusal = refusesResponse(views.snapshotOf(taskId), agent, attempt, event);
      if (refusal !== null) throw ServiceError.from(refusal);
    };
    requireAllowed(task?.running ?? null);
    const agent = agentActor(attemptKey(taskId, attempt));
    if (agent === undefined || task === null) return null;
    const answer = (): TaskView => views.viewOf(task.tracked);
    return sendRequest(agent, event, { requestId: null, requireAllowed, answer }).catch((error) => {
      if (error instanceof ActorEndedError) requireAllowed(null);
      throw asServiceError(error);
    });
  };
};

export const createTaskCommands = (machine: TaskMachine, ports: TaskCommandPorts): TaskCommands => {
  const { tracker, store, journal, now } = ports;
  const resting = createRestingViews(store);
  let restored = false;
  let stopped = false;
  const live = (taskId: TaskId): LiveTask | null => registry.get(taskId);
  const deadlines = createDeadlines(ports, live);
  const recorder = createTransitionRecorder({
    journal,
    prepared: ports.prepared,
    resting,
    live,
    setDeadline: deadlines.set,
    discard: (taskId, task, error) => registry.discard(taskId, task, error),
    now,
  });
  const logic: TaskMachine = durable(machine, {
    now,
    commit: (transition) => recorder.task(transition, machine.getPersistedSnapshot(transition.next)),
    ...transitionDeadline,
  });
  const registry = createTaskRegistry(logic, {
    ...ports,
    onCrash: (taskId) => {
      journal.discard(taskId);
      ports.onCrash(taskId);
    },
    setDeadline: deadlines.set,
    observation: (tracked) => observationOf(tracked, now()),
  });
  const views = createTaskViews({ store, now, resting, live });

  return {
    ...views,
    ask: createAsk(ports, registry, views),
    respond: createRespond(ports, registry, views, () => restored),
    failWith: (taskId, dependency, why) =>
      registry.use(taskId, async ({ actor }) => {
        if (actor.getSnapshot().hasTag('pending')) return;
        actor.send({ type: 'dependency.failed', dependency, why, at: now() });
      }),
    observe: createObserver({
      tracker,
      store,
      journal,
      now,
      resting,
      live,
      isPending: (taskId) => live(taskId)?.actor.getSnapshot().hasTag('pending') === true,
      isStarting: registry.isStarting,
      startActor: (taskId) => registry.use(taskId, async () => {}),
    }),
    refresh: async (taskId) => {
      const tracked = await tracker.find(taskId);
      const task = live(taskId);
      if (tracked !== null && task !== null) task.tracked = tracked;
      return tracked;
    },
    restore: async () => {
      restored = false;
      const ids = await restoreTasks({ store, tracker }, registry);
      restored = true;
      compareWithJournals(store, ids, ports.log, () => stopped).catch((error: unknown) =>
        ports.log('the journals could not be compared with the saved states', { error }),
      );
    },
    commitAgent: recorder.agent,
    takeOverAgent: async (taskId, attempt) => {
      const saved = await store.takeOver(attemptKey(taskId, attempt));
      const task = live(taskId);
      if (task !== null) task.agentRevision = saved?.revision ?? 0;
      return saved;
    },
    dropAll: async () => {
      await journal.flush();
      registry.dropAll();
    },
    stop: () => {
      stopped = true;
      deadlines.stop();
      registry.stop();
    },
  };
};
