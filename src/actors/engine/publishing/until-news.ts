import { setTimeout } from 'node:timers/promises';
import { fromPromise } from 'xstate';
import { messageOf } from '../../../machines/message-of.ts';
import type {
  Asked,
  PullRequestContext,
  PullRequestProblem,
} from '../../../machines/pull-request/pull-request-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import { ForgeError, type ForgeFault } from '../../forge/port.ts';

/** A problem that somebody can mend, or the forge itself. Thrown here, and told as a result. */
export class PullRequestError extends Error {
  readonly problem: PullRequestProblem;
  constructor(problem: PullRequestProblem) {
    super(problem.message);
    this.problem = problem;
  }
}

export const forPerson = (message: string, fault: ForgeFault = 'refused') =>
  new PullRequestError({ needs: 'person', fault, message, retryAt: null });

/** Says who can mend it. */
const problemIn = (error: unknown): PullRequestProblem => {
  if (error instanceof PullRequestError) return error.problem;
  if (!(error instanceof ForgeError))
    return { needs: 'forge', message: messageOf(error), retryAt: null };
  const { fault, message, retryAt } = error;
  const needs = fault === 'limit' ? 'limit' : fault === 'away' ? 'forge' : 'person';
  return { needs, fault, message, retryAt };
};

/** Pauses between two requests for a task; something that happened to the task ends its pause. */
export const createPauses = () => {
  const waiting = new Map<TaskId, AbortController>();
  return {
    pause: async (taskId: TaskId, ms: number, signal: AbortSignal): Promise<void> => {
      const ended = new AbortController();
      waiting.set(taskId, ended);
      const either = AbortSignal.any([signal, ended.signal]);
      await setTimeout(ms, undefined, { signal: either, ref: false }).catch(() => {});
      if (waiting.get(taskId) === ended) waiting.delete(taskId);
      signal.throwIfAborted();
    },
    end: (taskId: TaskId): void => waiting.get(taskId)?.abort(),
  };
};

/**
 * Does something until it gives a result, with pauses that grow, or a problem that a person mends, or
 * that is another one than before: the journal grows only when something changes.
 */
export const createUntilNews =
  (
    now: () => number,
    /** The shortest and the longest one. */
    pausesMs: () => readonly [number, number],
    { pause }: Pick<ReturnType<typeof createPauses>, 'pause'>,
  ) =>
  <Output>(
    doOnce: (context: PullRequestContext, signal: AbortSignal) => Promise<Output | null>,
    waitsFirst = ({ problem }: PullRequestContext): boolean => problem !== null,
  ) =>
    fromPromise<Asked<Output>, PullRequestContext>(async ({ input, signal }) => {
      let [pauseMs, longestMs] = pausesMs();
      let last = input.problem;
      for (let waits = waitsFirst(input); ; waits = true) {
        if (waits) {
          const ms = Math.max(pauseMs, (last?.retryAt ?? 0) - now());
          await pause(input.taskId, ms, signal);
          pauseMs = Math.min(pauseMs * 2, longestMs);
        }
        try {
          const news = await doOnce(input, signal);
          if (news !== null) return { done: news };
          last = null;
        } catch (error) {
          signal.throwIfAborted();
          last = problemIn(error);
          const { needs, message } = last;
          const isNew = needs !== input.problem?.needs || message !== input.problem.message;
          if (isNew || needs === 'person') return { problem: last };
        }
      }
    });
