import { setTimeout as delay } from 'node:timers/promises';
import type { AnyActorRef } from 'xstate';
import type { Tell } from '../../../machines/agent/agent-context.ts';
import type { AgentSnapshot } from '../../../machines/agent/agent-machine.ts';
import { isServiceError, type Refusal, ServiceError } from '../../../machines/errors.ts';
import {
  type ResponseProblem,
  refusesTell,
  refusesToKeep,
} from '../../../machines/task/command-refusals.ts';
import type { TaskSnapshot } from '../../../machines/task/task-machine.ts';
import { attemptKey, type Stamped, type TaskId } from '../../../machines/task.ts';
import type { Journal } from '../../journal/journal.ts';
import { ActorEndedError, sendRequest } from '../../journal/requests.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { RequestAnswers } from '../../store/port.ts';
import type { LoadedTask, LoadedTasks, TaskViews } from './loaded-tasks.ts';
import { createSharedCalls } from './shared-calls.ts';
import type { TaskRegistry } from './task-registry.ts';

/** The names of `respond` and `tell` on the wire. */
const responsePaths = { inputId: 'input_id', text: 'text', decision: 'decision' } as const;

export const asResponseError = (refused: Refusal | ResponseProblem): ServiceError => {
  if ('code' in refused) return ServiceError.from(refused);
  const { field, problem } = refused;
  return new ServiceError('invalid_params', { fields: [{ path: responsePaths[field], problem }] });
};

interface TellPorts {
  readonly live: Pick<LoadedTasks, 'get'>;
  readonly views: Pick<TaskViews, 'snapshotOf' | 'viewOfLive'>;
  readonly registry: Pick<TaskRegistry, 'use'>;
  readonly journal: Pick<Journal, 'whenSaved'>;
  readonly store: Pick<RequestAnswers, 'request'>;
  readonly now: () => number;
  readonly agentActor: (key: string) => AnyActorRef | undefined;
}

const longestWaitMs = 10_000;
const pollMs = 20;

/** An attempt that begins, or goes on after a restart, has no agent for a moment. */
const isAgentComing = (task: LoadedTask | null): boolean => {
  const snapshot = task?.actor.getSnapshot();
  if (task?.running != null || snapshot === undefined) return false;
  return snapshot.matches({ started: 'claiming' }) || snapshot.matches({ started: 'working' });
};

const requireNone = (refused: ReturnType<typeof refusesTell>): void => {
  if (refused !== null) throw asResponseError(refused);
};

const asTellError = (error: unknown): ServiceError =>
  isServiceError(error) ? error : new ServiceError('internal', { detail: null }, { cause: error });

/** The task keeps the message for the agent of its next turn. @throws event_not_allowed, invalid_params */
const createKeep =
  ({ registry, journal, views }: TellPorts) =>
  (taskId: TaskId, event: Stamped<Tell>, requestId: string | null): Promise<void> =>
    registry.use(taskId, async (task) => {
      const requireAllowed = (snapshot: TaskSnapshot): void =>
        requireNone(refusesToKeep(snapshot, event));
      const answer = (): TaskView => views.viewOfLive(task);
      await sendRequest(task.actor, event, { requestId, requireAllowed, answer }).catch((error) => {
        throw asTellError(task.fault ?? error);
      });
      // The transition of a quiet state is saved with the next one.
      await journal.whenSaved();
    });

/**
 * Gives what a person says to the agent of the live attempt, which reads it once, at its next turn. A
 * message that no agent can take now is kept with the task.
 * @throws event_not_allowed, invalid_params
 */
export const createTell = (ports: TellPorts) => {
  const { live, views, store, now, agentActor } = ports;
  const repeated = createSharedCalls<void>();
  const keep = createKeep(ports);

  /** @returns false when no agent can take it */
  const give = async (
    taskId: TaskId,
    event: Stamped<Tell>,
    requestId: string | null,
  ): Promise<boolean> => {
    const task = live.get(taskId);
    const saved = await views.snapshotOf(taskId);
    const agent = agentActor(attemptKey(taskId, saved.context.attempt));
    if (agent === undefined || task === null || task.running === null) return false;
    const requireAllowed = (running: AgentSnapshot | null): void =>
      requireNone(refusesTell(task.actor.getSnapshot(), running, event));
    const answer = (): TaskView => views.viewOfLive(task);
    try {
      await sendRequest(agent, event, { requestId, requireAllowed, answer });
      return true;
    } catch (error) {
      const isOver = isServiceError(error) && error.code === 'event_not_allowed';
      if (error instanceof ActorEndedError || isOver) return false;
      throw asTellError(error);
    }
  };

  const tell = async (taskId: TaskId, event: Stamped<Tell>, requestId: string | null) => {
    for (let waited = 0; waited < longestWaitMs; waited += pollMs) {
      if (!isAgentComing(live.get(taskId))) break;
      await delay(pollMs);
    }
    if (await give(taskId, event, requestId)) return;
    await keep(taskId, event, requestId);
  };

  return async (taskId: TaskId, text: string, requestId: string | null): Promise<void> => {
    const send = (): Promise<void> => tell(taskId, { type: 'tell', text, at: now() }, requestId);
    if (requestId === null) return send();
    return repeated.run(requestId, async () => {
      if ((await store.request(requestId)) === null) await send();
    });
  };
};
