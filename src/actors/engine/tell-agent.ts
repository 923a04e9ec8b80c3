import { setTimeout as delay } from 'node:timers/promises';
import type { AnyActorRef } from 'xstate';
import type { Tell } from '../../machines/agent-context.ts';
import type { AgentSnapshot } from '../../machines/agent-machine.ts';
import { refusesTell } from '../../machines/command-refusals.ts';
import { isServiceError, ServiceError } from '../../machines/errors.ts';
import { attemptKey, type Stamped, type TaskId } from '../../machines/task.ts';
import { ActorEndedError, sendRequest } from '../journal/requests.ts';
import type { TaskView } from '../journal/task-view.ts';
import type { RequestAnswers } from '../store/port.ts';
import type { LoadedTask, LoadedTasks } from './loaded-tasks.ts';
import { createSharedCalls } from './shared-calls.ts';
import type { TaskViews } from './task-views.ts';

export interface TellPorts {
  readonly live: Pick<LoadedTasks, 'get'>;
  readonly views: Pick<TaskViews, 'snapshotOf' | 'viewOfLive'>;
  readonly store: Pick<RequestAnswers, 'request'>;
  readonly now: () => number;
  /** The actor of an agent, if it is alive. */
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

/**
 * Gives what a person says to the agent of the live attempt, which reads it once, at its next turn.
 * @throws event_not_allowed, invalid_params
 */
export const createTell = ({ live, views, store, now, agentActor }: TellPorts) => {
  const repeated = createSharedCalls<void>();

  const tell = async (taskId: TaskId, event: Stamped<Tell>, requestId: string | null) => {
    for (let waited = 0; waited < longestWaitMs; waited += pollMs) {
      if (!isAgentComing(live.get(taskId))) break;
      await delay(pollMs);
    }
    const task = live.get(taskId);
    const saved = await views.snapshotOf(taskId);
    const requireAllowed = (agent: AgentSnapshot | null): void => {
      const refusal = refusesTell(task?.actor.getSnapshot() ?? saved, agent, event);
      if (refusal !== null) throw ServiceError.from(refusal);
    };
    requireAllowed(task?.running ?? null);
    const agent = agentActor(attemptKey(taskId, saved.context.attempt));
    if (agent === undefined || task === null) return requireAllowed(null);
    const answer = (): TaskView => views.viewOfLive(task);
    await sendRequest(agent, event, { requestId, requireAllowed, answer }).catch((error) => {
      if (error instanceof ActorEndedError) requireAllowed(null);
      throw isServiceError(error)
        ? error
        : new ServiceError('internal', { detail: null }, { cause: error });
    });
  };

  return async (taskId: TaskId, text: string, requestId: string | null): Promise<void> => {
    const send = (): Promise<void> => tell(taskId, { type: 'tell', text, at: now() }, requestId);
    if (requestId === null) return send();
    return repeated.run(requestId, async () => {
      if ((await store.request(requestId)) === null) await send();
    });
  };
};
