import type { AgentStart } from '../../../machines/agent/agent-context.ts';
import { type AttemptOutcome, attemptKey, type TaskId } from '../../../machines/task.ts';
import { staleCommit } from '../../journal/commit-answer.ts';
import type { CommitAnswer } from '../../store/port.ts';
import type { SupervisorEvents } from '../slots/supervision.ts';
import { createWaiters } from '../slots/waiters.ts';
import type { RunningWork } from './running-work.ts';

/** Runs agents under the supervisor. */
export interface AgentRuns {
  /**
   * Resolves with the outcome. When the signal aborts, the agent stops; rejects after its work has
   * ended.
   */
  run(input: AgentStart, signal: AbortSignal): Promise<AttemptOutcome>;
  /** Stops the agent and waits for the end of its work. @throws after 20 s */
  stop(taskId: TaskId, attempt: number): Promise<void>;
}

/** `commitStart` saves the first snapshot of an agent before its actor exists. */
export const createAgentRuns = (
  supervisor: Pick<SupervisorEvents, 'send' | 'on'>,
  work: Pick<RunningWork, 'ended' | 'whenAttemptEnded'>,
  commitStart: (input: AgentStart) => CommitAnswer | Promise<CommitAnswer>,
): AgentRuns => {
  const outcomes = createWaiters<AttemptOutcome>();
  supervisor.on('agent.ended', ({ key, outcome }) => outcomes.answer(key, outcome));
  return {
    run: async (input, signal) => {
      if ((await commitStart(input)) === 'stale') throw staleCommit();
      signal.throwIfAborted();
      const key = attemptKey(input.taskId, input.attempt);
      const ended = outcomes.wait(key, signal, (reject) => {
        supervisor.send({ type: 'agent.dismissed', key });
        void work.ended(key).then(reject);
      });
      supervisor.send({ type: 'agent.requested', key, input });
      return ended;
    },
    stop: async (taskId, attempt) => {
      supervisor.send({ type: 'agent.dismissed', key: attemptKey(taskId, attempt) });
      await work.whenAttemptEnded(taskId, attempt);
    },
  };
};
