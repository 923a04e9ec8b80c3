import type { AgentStart } from '../../machines/agent-context.ts';
import { type AttemptKey, type AttemptOutcome, attemptKey, type TaskId } from '../../machines/task.ts';
import { staleCommit } from '../journal/commit-answer.ts';
import { withTimeout } from '../process/with-timeout.ts';
import type { CommitAnswer } from '../store/port.ts';
import type { Supervision } from './supervision.ts';
import { createWaiters } from './waiters.ts';

/** Runs agents under the supervisor, and knows the work that they started. */
export interface AgentRuns {
  /** Resolves with the outcome. When the signal aborts, the agent stops; rejects after its work has ended. */
  run(input: AgentStart, signal: AbortSignal): Promise<AttemptOutcome>;
  /** Registers work of an attempt: the attempt is over only after this has ended. */
  track<Result>(key: AttemptKey, work: Promise<Result>): Promise<Result>;
  /** Stops the agent and waits for the end of its work. @throws after 20 s */
  stop(taskId: TaskId, attempt: number): Promise<void>;
  /** Waits for the end of the work of every attempt of a task. @throws after 20 s */
  whenEnded(taskId: TaskId): Promise<void>;
  /** Waits for the end of all work, at most `ms`. */
  settle(ms: number): Promise<void>;
}

const longestStopMs = 20_000;

/** `commitStart` saves the first snapshot of an agent before its actor exists. */
export const createAgentRuns = (
  supervisor: Pick<Supervision, 'send' | 'on'>,
  commitStart: (input: AgentStart) => CommitAnswer | Promise<CommitAnswer>,
): AgentRuns => {
  const outcomes = createWaiters<AttemptOutcome>();
  const working = new Map<string, Set<Promise<unknown>>>();
  supervisor.on('agent.ended', ({ key, outcome }) => outcomes.answer(key, outcome));

  const workOf = (key: AttemptKey): Promise<unknown> => Promise.allSettled([...(working.get(key) ?? [])]);
  return {
    run: async (input, signal) => {
      if ((await commitStart(input)) === 'stale') throw staleCommit();
      signal.throwIfAborted();
      const key = attemptKey(input.taskId, input.attempt);
      const ended = outcomes.wait(key, signal, (reject) => {
        supervisor.send({ type: 'agent.dismissed', key });
        void workOf(key).then(reject);
      });
      supervisor.send({ type: 'agent.requested', key, input });
      return ended;
    },
    track: (key, work) => {
      const all = working.get(key) ?? new Set();
      working.set(key, all.add(work));
      const forget = (): void => {
        all.delete(work);
        if (all.size === 0) working.delete(key);
      };
      work.then(forget, forget);
      return work;
    },
    stop: async (taskId, attempt) => {
      const key = attemptKey(taskId, attempt);
      supervisor.send({ type: 'agent.dismissed', key });
      await withTimeout(workOf(key), longestStopMs, `the work of attempt ${attempt}`);
    },
    whenEnded: async (taskId) => {
      const own = [...working].filter(([key]) => key.startsWith(`${taskId}#`)).flatMap(([, all]) => [...all]);
      if (own.length > 0)
        await withTimeout(Promise.allSettled(own), longestStopMs, `what an attempt of ${taskId} did before`);
    },
    settle: (ms) =>
      withTimeout(Promise.allSettled([...working.values()].flatMap((all) => [...all])), ms, 'the work').catch(() => {}),
  };
};
