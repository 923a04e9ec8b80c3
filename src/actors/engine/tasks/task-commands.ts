import { type AnyActorRef, waitFor } from 'xstate';
import type { Response } from '../../../machines/agent/agent-context.ts';
import type { AgentSnapshot } from '../../../machines/agent/agent-machine.ts';
import { isServiceError, ServiceError } from '../../../machines/errors.ts';
import {
  refuses,
  refusesOver,
  refusesResponse,
  runToLookUp,
} from '../../../machines/task/command-refusals.ts';
import type { EndedDependency, TaskCommand } from '../../../machines/task/task-context.ts';
import type { TaskMachine, TaskSnapshot } from '../../../machines/task/task-machine.ts';
import {
  attemptKey,
  type Finding,
  type Role,
  type RunOptions,
  type TaskId,
} from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import { durable } from '../../journal/durable-actor.ts';
import type { Journal } from '../../journal/journal.ts';
import { ActorEndedError, sendRequest } from '../../journal/requests.ts';
import { trackerObserved, willAskAgain } from '../../journal/snapshots.ts';
import type { TaskView } from '../../journal/task-view.ts';
import { LeaseLostError, type SavedActor, StoreError } from '../../store/port.ts';
import type { Tracker } from '../../tracker/port.ts';
import type { ActorRoot } from '../slots/actor-system.ts';
import type { DependencyWaits } from './dependency-waits.ts';
import type { LoadedTask } from './loaded-tasks.ts';
import { OwnedElsewhereError } from './owned-elsewhere.ts';
import { createRestoreAttempts } from './restore-attempts.ts';
import { compareWithJournals, dropTaken, restoreTasks } from './restore-tasks.ts';
import type { TaskHost } from './task-host.ts';
import { createTaskRegistry, type TaskRegistry, type TaskRegistryPorts } from './task-registry.ts';
import { asResponseError, createTell } from './tell-agent.ts';
import { createObserver } from './tracker-sync.ts';

export interface TaskCommandPorts
  extends Omit<TaskRegistryPorts, 'root' | 'live' | 'setDeadline' | 'observation' | 'tracker'> {
  readonly root: ActorRoot;
  readonly host: TaskHost;
  readonly tracker: Tracker;
  readonly journal: Journal;
  readonly waits: Pick<DependencyWaits, 'changed'>;
  readonly agentActor: (key: string) => AnyActorRef | undefined;
  /** True for the server of all that observes tasks at rest. */
  readonly observesRest: () => boolean;
  readonly lookUp: (taskId: TaskId, options: RunOptions, role: Role) => Promise<Finding>;
}

/**
 * Commands to task actors. Their states decide; every transition is committed before its effects.
 */
export interface TaskCommands {
  /**
   * A command with a `requestId` is carried out once, and again only when the task refused it.
   * @throws task_not_found, already_running, event_not_allowed, or the refusal of the chart;
   * RepeatedRequestError
   */
  ask(taskId: TaskId, command: TaskCommand, requestId?: string): Promise<TaskView>;
  /**
   * Gives a person's answer to the live attempt. @throws event_not_allowed, stale_attempt,
   * invalid_params
   */
  respond(taskId: TaskId, attempt: number, response: Response): Promise<TaskView | null>;
  /**
   * Gives what a person says to the live agent, for its next turn; once for each `requestId`.
   * @throws event_not_allowed, invalid_params
   */
  tell(taskId: TaskId, text: string, requestId: string | null): Promise<void>;
  /** Fails a task at rest whose dependency failed or was cancelled. */
  failWith(taskId: TaskId, ended: EndedDependency): Promise<void>;
  /**
   * Takes a change in the tracker: shows it for a task at rest; for a task at work, reads the
   * tracker again and tells the task when somebody closed or took it.
   * @returns false when the task is at work and must be observed again
   */
  observe(seen: TrackedTask, saved: SavedActor | null): Promise<boolean>;
}

/** Starts and stops the actors of the tasks that this server has. */
export interface TaskActors {
  /** In this order. `working`: those whose attempt runs. */
  restore(taskIds: readonly TaskId[], working: readonly TaskId[]): Promise<void>;
  /** Restores tasks that another server had. */
  takeUp(taskIds: readonly TaskId[], working: readonly TaskId[]): Promise<void>;
  /** Those of its tasks that this server has not loaded, and that are not on the way. */
  missingOf(taskIds: readonly TaskId[]): readonly TaskId[];
  /** Those that could not be restored, and are tried again. */
  failing(): ReadonlySet<TaskId>;
  /** Stops the actors of tasks that another server has now. */
  drop(taskIds: readonly TaskId[]): Promise<void>;
  /**
   * Stops every task actor; `restore` starts them again. @throws when gathered changes cannot be
   * committed
   */
  dropAll(): Promise<void>;
  stop(): void;
}

/** The command was carried out before, for the same request. */
export class RepeatedRequestError extends Error {
  override readonly name = 'RepeatedRequestError';
}

const answerMs = 30_000;
const longestWaitForAgentMs = 10_000;
const pollMs = 20;

/** Shows the message of a StoreError; other unknown errors stay internal. */
const asServiceError = (cause: unknown): ServiceError =>
  isServiceError(cause)
    ? cause
    : new ServiceError(
        'internal',
        { detail: cause instanceof StoreError ? cause.message : null },
        { cause },
      );

/** The snapshot after the request was answered, or after 30 s. */
const answerOf = async (actor: LoadedTask['actor']): Promise<TaskSnapshot> => {
  const isAnswered = (snapshot: TaskSnapshot): boolean => !snapshot.hasTag('answering');
  await waitFor(actor, isAnswered, { timeout: answerMs }).catch(() => {});
  const snapshot = actor.getSnapshot();
  if (snapshot.status === 'error') throw asServiceError(snapshot.error);
  return snapshot;
};

const createCommandAsk =
  (
    { host: { live, views }, node, store, journal, now, lookUp }: TaskCommandPorts,
    registry: TaskRegistry,
  ): TaskCommands['ask'] =>
  async (taskId, command, requestId) => {
    /** Commits before the answer. When that fails, the actor is restored from the state before. */
    const commitGathered = async (task: LoadedTask): Promise<void> => {
      const requireSame = (): void => {
        if (live.get(taskId) !== task) throw task.fault;
      };
      requireSame();
      try {
        // A claim that needs no other program is ready in this turn: one transaction holds both.
        await journal.whenSaved();
      } catch (error) {
        live.discard(taskId, task, error);
        throw error;
      }
      requireSame();
    };
    const requireFound = async (task: TaskSnapshot): Promise<void> => {
      const run = runToLookUp(task, command);
      if (run === null) return;
      const finding = await lookUp(taskId, run.options, run.role);
      const refusal = refusesOver(task, command, finding);
      if (refusal !== null) throw ServiceError.from(refusal);
    };
    const wasCarriedOut = async (): Promise<boolean> =>
      requestId !== undefined && (await store.request(requestId)) !== null;
    const carryOut = async (task: LoadedTask): Promise<TaskView> => {
      // Read after the state that the commit is compared with: what comes later makes it stale.
      if (!task.actor.getSnapshot().hasTag('refused') && (await wasCarriedOut()))
        throw new RepeatedRequestError();
      await requireFound(task.actor.getSnapshot());
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
      return views.viewOfLive(task);
    };
    try {
      return await registry.use(taskId, carryOut, { givesUp: command.type === 'cancel' });
    } catch (error) {
      if (error instanceof RepeatedRequestError) throw error;
      if (isServiceError(error) || error instanceof LeaseLostError) throw asServiceError(error);
      // Another server may have taken the task meanwhile.
      const saved = await store.actor(taskId);
      const owner = saved?.pending === true ? saved.owner : null;
      if (owner !== null && owner !== node) throw new OwnedElsewhereError(owner);
      throw (await wasCarriedOut()) ? new RepeatedRequestError() : asServiceError(error);
    }
  };

const createRespond = (
  { host: { live, views }, store, now, agentActor }: TaskCommandPorts,
  isRestored: () => boolean,
): TaskCommands['respond'] => {
  /** True while a question of an earlier server exists and its agent is not restored yet. */
  const isAgentComing = async (taskId: TaskId): Promise<boolean> => {
    const task = live.get(taskId);
    if (task === null) return !isRestored() && (await store.actor(taskId))?.pending === true;
    if (task.agent === null || !task.actor.getSnapshot().hasTag('live')) return false;
    return task.running === null ? task.agent.tags.has('awaiting') : willAskAgain(task.agent);
  };
  const waitForAgent = async (taskId: TaskId): Promise<void> => {
    for (let waited = 0; waited < longestWaitForAgentMs; waited += pollMs) {
      if (!(await isAgentComing(taskId))) return;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  };
  return async (taskId, attempt, response) => {
    await waitForAgent(taskId);
    const saved = await views.snapshotOf(taskId);
    const task = live.get(taskId);
    const event = { ...response, at: now() };
    const requireAllowed = (agent: AgentSnapshot | null): void => {
      const snapshot = live.get(taskId)?.actor.getSnapshot() ?? saved;
      const refused = refusesResponse(snapshot, agent, attempt, event);
      if (refused !== null) throw asResponseError(refused);
    };
    requireAllowed(task?.running ?? null);
    const agent = agentActor(attemptKey(taskId, attempt));
    if (agent === undefined || task === null) return null;
    const answer = (): TaskView => views.viewOfLive(task);
    return sendRequest(agent, event, { requestId: null, requireAllowed, answer }).catch((error) => {
      if (error instanceof ActorEndedError) requireAllowed(null);
      throw asServiceError(error);
    });
  };
};

const createRestore = (
  { store, log }: TaskCommandPorts,
  restore: TaskActors['restore'],
  isStopped: () => boolean,
): {
  readonly run: TaskActors['restore'];
  readonly isDone: () => boolean;
  readonly begin: () => void;
} => {
  let isDone = false;
  return {
    isDone: () => isDone,
    begin: () => {
      isDone = false;
    },
    run: async (ids, working) => {
      isDone = false;
      await restore(ids, working);
      isDone = true;
      compareWithJournals(store, ids, log, isStopped).catch((error: unknown) =>
        log('could not compare the journals with the saved states', { error }),
      );
    },
  };
};

/** `machine` has all its actors. */
export const createTaskCommands = (
  machine: TaskMachine,
  ports: TaskCommandPorts,
): TaskCommands & TaskActors => {
  const { host, tracker, store, journal, now } = ports;
  const { live, deadlines, recorder } = host;
  const logic: TaskMachine = durable(machine, {
    now,
    commit: (transition) =>
      recorder.task(transition, machine.getPersistedSnapshot(transition.next)),
    ...journal.deadline,
  });
  const registry = createTaskRegistry(logic, {
    ...ports,
    live,
    setDeadline: deadlines.set,
    observation: (tracked) => trackerObserved(tracked, now()),
  });
  let stopped = false;
  const isStopped = (): boolean => stopped;
  const restoreAttempts = createRestoreAttempts({ ...ports, registry, isStopped });
  const arriving = new Set<TaskId>();
  const takeUp: TaskActors['takeUp'] = async (taskIds, working) => {
    for (const taskId of taskIds) arriving.add(taskId);
    try {
      await restoreTasks({ ...ports, registry, live }, restoreAttempts, taskIds, working);
    } finally {
      for (const taskId of taskIds) arriving.delete(taskId);
    }
  };
  const isComing = (taskId: TaskId): boolean =>
    arriving.has(taskId) || registry.isStarting(taskId) || restoreAttempts.inTurn.has(taskId);
  const restore = createRestore(ports, takeUp, isStopped);

  return {
    ask: createCommandAsk(ports, registry),
    respond: createRespond(ports, restore.isDone),
    tell: createTell({
      live,
      views: host.views,
      registry,
      journal,
      store,
      now,
      agentActor: ports.agentActor,
    }),
    failWith: (taskId, ended) =>
      registry.use(taskId, async ({ actor }) => {
        if (actor.getSnapshot().hasTag('pending')) return;
        actor.send({ type: 'dependency.failed', ...ended, at: now() });
      }),
    observe: createObserver({
      tracker,
      store,
      journal,
      now,
      live: live.get,
      isPending: live.isPending,
      isStarting: registry.isStarting,
      dependenciesChanged: ports.waits.changed,
      node: ports.node,
      observesRest: ports.observesRest,
      startActor: (taskId) => registry.use(taskId, async () => {}),
    }),
    restore: restore.run,
    takeUp,
    missingOf: (taskIds) => {
      const failing = registry.failing();
      return restore.isDone()
        ? taskIds.filter((id) => live.get(id) === null && !isComing(id) && !failing.has(id))
        : [];
    },
    failing: registry.failing,
    drop: (taskIds) => dropTaken({ ...ports, registry, live }, taskIds),
    dropAll: async () => {
      restore.begin();
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
