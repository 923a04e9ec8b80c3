import type { AgentStart, Spent } from '../../../machines/agent/agent-context.ts';
import { withSpent } from '../../../machines/agent/agent-rules.ts';
import {
  type AttemptKey,
  type AttemptOutcome,
  attemptKey,
  noUsage,
  type TaskId,
  type Usage,
} from '../../../machines/task.ts';
import { staleCommit } from '../../journal/commit-answer.ts';
import { withTimeout } from '../../process/deadline.ts';
import type { CommitAnswer } from '../../store/port.ts';
import { createWaiters } from '../slots/slots.ts';
import type { SupervisorEvents } from '../slots/supervision.ts';

/** The work that agents started. An attempt is over only after all of its work has ended. */
export interface RunningWork {
  track<Result>(key: AttemptKey, work: Promise<Result>): Promise<Result>;
  /** Counts what a call cost whose agent had ended before the call did. */
  addCut(key: AttemptKey, spent: Spent): void;
  /** The sum of those, once; null: there were none. */
  takeCut(key: AttemptKey): Usage | null;
  /** Waits without a limit. */
  ended(key: AttemptKey): Promise<void>;
  /** @throws after 20 s */
  whenAttemptEnded(taskId: TaskId, attempt: number): Promise<void>;
  /** Waits for the work of every attempt of a task. @throws after 20 s */
  whenTaskEnded(taskId: TaskId): Promise<void>;
  /** Waits for the end of all work, at most `ms`. */
  settle(ms: number): Promise<void>;
}

const longestStopMs = 20_000;

export const createRunningWork = (): RunningWork => {
  const working = new Map<string, Set<Promise<unknown>>>();
  const cuts = new Map<AttemptKey, Usage>();
  const counted = new WeakSet<Spent>();
  const allOf = (belongs: (key: string) => boolean): readonly Promise<unknown>[] =>
    [...working].filter(([key]) => belongs(key)).flatMap(([, all]) => [...all]);
  const workOf = (key: AttemptKey) => Promise.allSettled([...(working.get(key) ?? [])]);
  return {
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
    addCut: (key, spent) => {
      if (counted.has(spent)) return;
      counted.add(spent);
      cuts.set(key, withSpent(cuts.get(key) ?? noUsage, spent, 0));
    },
    takeCut: (key) => {
      const cut = cuts.get(key) ?? null;
      cuts.delete(key);
      return cut;
    },
    ended: async (key) => void (await workOf(key)),
    whenAttemptEnded: async (taskId, attempt) => {
      const key = attemptKey(taskId, attempt);
      await withTimeout(workOf(key), longestStopMs, `the work of attempt ${attempt}`);
    },
    whenTaskEnded: async (taskId) => {
      const own = allOf((key) => key.startsWith(`${taskId}#`));
      if (own.length > 0)
        await withTimeout(
          Promise.allSettled(own),
          longestStopMs,
          `what an attempt of ${taskId} did before`,
        );
    },
    settle: (ms) =>
      withTimeout(Promise.allSettled(allOf(() => true)), ms, 'the work').catch(() => {}),
  };
};

/** Runs agents under the supervisor. */
export interface AgentRuns {
  /**
   * Resolves with the outcome. When the signal aborts, the agent stops; rejects after its work has
   * ended.
   */
  run(input: AgentStart, signal: AbortSignal): Promise<AttemptOutcome>;
  /** Stops the agent and waits for the end of its work. @throws after 20 s */
  stop(taskId: TaskId, attempt: number): Promise<void>;
  /** The cost of calls that were cut with their agent, once; null: nothing. */
  takeCut(taskId: TaskId, attempt: number): Usage | null;
}

/** `commitStart` saves the first snapshot of an agent before its actor exists. */
export const createAgentRuns = (
  supervisor: Pick<SupervisorEvents, 'send' | 'on'>,
  work: Pick<RunningWork, 'ended' | 'whenAttemptEnded' | 'takeCut'>,
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
    takeCut: (taskId, attempt) => work.takeCut(attemptKey(taskId, attempt)),
  };
};
