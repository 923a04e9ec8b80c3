import { setTimeout } from 'node:timers/promises';
import { fromPromise } from 'xstate';
import { isServiceError } from '../../../machines/errors.ts';
import { messageOf } from '../../../machines/message-of.ts';
import type {
  Asked,
  PullRequestContext,
  PullRequestProblem,
} from '../../../machines/pull-request/pull-request-context.ts';
import type { ForgeProblem } from '../../../machines/source/forge-problem.ts';
import { ForgeError, type ForgeFault } from '../../forge/port.ts';
import type { PublishSettings } from '../attempts/settings.ts';
import type { PulseNews } from './pulse.ts';

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

/** Refusals of this server that are over by themselves. */
const passing: ReadonlySet<string> = new Set(['internal', 'tracker_unavailable', 'queue_full']);

/** Says who can mend it. */
export const problemIn = (error: unknown): ForgeProblem => {
  if (error instanceof PullRequestError) return { fault: 'refused', ...error.problem };
  if (isServiceError(error) && !passing.has(error.code))
    return { needs: 'person', fault: 'refused', message: error.message, retryAt: null };
  if (!(error instanceof ForgeError))
    return { needs: 'forge', fault: 'away', message: messageOf(error), retryAt: null };
  const { fault, message, retryAt } = error;
  const needs = fault === 'limit' ? 'limit' : fault === 'away' ? 'forge' : 'person';
  return { needs, fault, message, retryAt };
};

const isSame = (one: PullRequestProblem, other: PullRequestProblem | null): boolean =>
  one.needs === other?.needs && one.message === other.message;

const orProblem = async <Output>(
  work: () => Promise<Output>,
  signal: AbortSignal,
): Promise<Asked<Output>> => {
  try {
    return { done: await work() };
  } catch (error) {
    signal.throwIfAborted();
    return { problem: problemIn(error) };
  }
};

type Pause = (
  context: PullRequestContext,
  after: { readonly ms: number; readonly problem: PullRequestProblem | null },
  signal: AbortSignal,
) => Promise<PulseNews>;

const sleep =
  (now: () => number): Pause =>
  async (_, { ms, problem }, signal) => {
    const atLeastMs = (problem?.retryAt ?? 0) - now();
    await setTimeout(Math.max(ms, atLeastMs), undefined, { signal, ref: false });
    return 'moved';
  };

interface UntilNewsPorts {
  readonly settings: () => Pick<PublishSettings, 'pauseMs'>;
  readonly now: () => number;
}

/**
 * Does something until it gives a result, with pauses that grow, or a problem that is another one than
 * before: the journal grows only when something changes.
 */
export const createUntilNews =
  ({ settings, now }: UntilNewsPorts) =>
  <Output>(
    doOnce: (
      context: PullRequestContext,
      signal: AbortSignal,
      news: PulseNews,
    ) => Promise<Output | null>,
    waitsFirst = ({ problem }: PullRequestContext): boolean => problem !== null,
    pause: Pause = sleep(now),
  ) =>
    fromPromise<Asked<Output>, PullRequestContext>(async ({ input, signal }) => {
      let [ms, longestMs] = settings().pauseMs;
      let { problem } = input;
      let news = 'moved' as PulseNews;
      for (let waits = waitsFirst(input); ; waits = true) {
        const asked = await orProblem(async () => {
          if (waits) news = await pause(input, { ms, problem }, signal);
          return doOnce(input, signal, news);
        }, signal);
        problem = 'problem' in asked ? asked.problem : null;
        if (problem !== null && !isSame(problem, input.problem)) return { problem };
        if ('done' in asked && asked.done !== null) return { done: asked.done };
        if (waits && news !== 'task') ms = Math.min(ms * 2, longestMs);
      }
    });
