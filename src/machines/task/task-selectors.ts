import { describeRefusal, type ErrorFacts, type Refusal, refusal } from '../errors.ts';
import { messageOf } from '../message-of.ts';
import { dayMs, minuteMs } from '../milliseconds.ts';
import { type ReviewCommand, type Rework, reviewedWork } from '../review.ts';
import {
  type AttemptOutcome,
  type Failure,
  type Finding,
  failureOf,
  type Parking,
} from '../task.ts';
import type {
  Acceptance,
  Cut,
  EndedDependency,
  ObservedStatus,
  TaskContext,
} from './task-context.ts';

/** Read events and context into the params of guards and actions and the input of actors. */

type Now = { readonly context: TaskContext };
type Erred = { readonly event: { readonly error: unknown } };
type Answered<Output> = { readonly event: { readonly output: Output } };

/** Limit of each waiting state (ms); then DEADLINE leaves it. */
export const waits = {
  lookingUp: minuteMs,
  asking: minuteMs,
  queueing: dayMs,
  /** A dependency may wait for a person. */
  depending: 30 * dayMs,
  claiming: 2 * minuteMs,
  working: dayMs,
  verifying: 30 * minuteMs,
  recording: 5 * minuteMs,
  merging: 65 * minuteMs,
  closing: 2 * minuteMs,
  releasing: 2 * minuteMs,
} as const;

/** How often work with a failed check is returned to its agent. */
export const roundsAtMost = 2;
/** A longer outage of the tracker ends the attempt. */
export const longestTrackerOutageMs = dayMs;

export const deadlineIn = (afterMs: number) =>
  ({ type: 'setDeadline', params: { afterMs } }) as const;
export const eventOf = <Event>({ event }: { event: Event }): Event => event;
export const cancel = {
  target: 'cancelling',
  actions: { type: 'recordReason', params: eventOf },
} as const;

/** A message that no agent can read now stays with the task. */
export const keeps = {
  guard: { type: 'hasRoomFor', params: eventOf },
  actions: { type: 'keepMessage', params: eventOf },
} as const;
export const keepsForNext = {
  ...keeps,
  guard: { type: 'keepsForNext', params: eventOf },
} as const;

/** The attempt after a review: as the last one was. */
const runAfterReview = ({ event }: { readonly event: ReviewCommand }) => ({
  role: null,
  options: null,
  maxRetries: event.maxRetries,
});

const requestChanges = {
  guard: { type: 'requestsChanges', params: eventOf },
  target: '#task.queued.checking',
  actions: [
    'forgetLastRun',
    { type: 'requestRun', params: runAfterReview },
    { type: 'recordReview', params: eventOf },
  ],
} as const;
const noteReview = {
  guard: { type: 'reviewsAnAttempt', params: eventOf },
  actions: { type: 'recordReview', params: eventOf },
} as const;
/** A review of work that is at rest. */
export const review = [requestChanges, noteReview] as const;
/** The tracker has the task closed: it is opened there first. */
export const reviewOfComplete = [
  { ...requestChanges, target: '#task.queued.sendingBack' },
  noteReview,
] as const;

export const taskOnly = ({ context }: Now) => ({ taskId: context.taskId });
export const taskAndRole = ({ context }: Now) => ({
  taskId: context.taskId,
  role: context.role ?? ('engineer' as const),
});
export const lookUpInput = ({ context }: Now) => ({
  ...taskAndRole({ context }),
  options: context.options,
});
export const dependenciesInput = ({ context }: Now) => ({
  taskId: context.taskId,
  unmet: context.finding?.unmet ?? [],
});
/** A parked attempt goes on with the backend that it began with. */
export const slotWaitInput = ({ context }: Now) => ({
  ...taskAndRole({ context }),
  submittedAt: context.submittedAt ?? 0,
  options: context.options,
  backend: context.parked?.hasBegun === true ? context.parked.backend : null,
  triesNow: context.parked?.triesNow === true,
});
export const attemptOf = ({ context }: Now) => ({
  ...taskAndRole({ context }),
  attempt: context.attempt,
  options: context.options,
  ...reviewedWork(context.review),
});
export const runInput = ({ context }: Now) => ({
  ...attemptOf({ context }),
  feedback: context.feedback,
  ...(context.kept === undefined || context.kept.texts.length === 0 ? {} : { kept: context.kept }),
});
export const resultsInput = ({ context }: Now) => ({
  ...attemptOf({ context }),
  outcome: context.outcome,
});
export const stopInput = ({ context }: Now) => ({
  ...attemptOf({ context }),
  reason: context.reason,
});
/** A task between two attempts, after a wait for its dependencies, or parked was accepted before. */
export const slotRequestInput = ({ context }: Now) => ({
  ...slotWaitInput({ context }),
  admitted: context.failure !== null || context.accepted === true || context.parked !== undefined,
});
/** The label of an end in the tracker; null when another attempt follows. */
export type EndLabel = 'agent-failed' | 'agent-cancelled' | null;
export const releaseInput =
  (label: EndLabel) =>
  ({ context }: Now) => ({ taskId: context.taskId, attempt: context.attempt, label });
/** Attempt 0: no attempt began. A parked one ends. */
export const releaseQueued =
  (label: EndLabel) =>
  ({ context }: Now) => ({
    taskId: context.taskId,
    attempt: hasParkedAttempt(context) ? context.attempt : 0,
    label,
  });
export const hasParkedAttempt = ({ parked }: Pick<TaskContext, 'parked'>): boolean =>
  parked?.hasBegun === true;
export const willRetry = ({ failure, retriesLeft }: TaskContext): boolean =>
  failure?.retryable === true && retriesLeft > 0;
export const releaseAfterFailure = ({ context }: Now) =>
  releaseInput(willRetry(context) ? null : 'agent-failed')({ context });
/** What an attempt said, which completed the task; null when somebody closed it. */
export const ownOutcome = ({ outcome, byHand }: Pick<TaskContext, 'outcome' | 'byHand'>) =>
  outcome?.status === 'done' && byHand !== true ? outcome : null;
/** Without a role, no attempt completed it. */
export const closeInput = ({ context }: Now) => ({
  taskId: context.taskId,
  attempt: context.attempt,
  role: ownOutcome(context) === null ? null : context.role,
  reason: context.reason,
});

export const finding = ({ event }: Answered<Finding>) => ({ finding: event.output });
export const foundBudget = ({ context }: Now) => ({
  parking: context.finding?.usedBudget ?? null,
});
export const recorded = ({ event }: Answered<{ readonly toMerge: boolean }>) => event.output;
/** Journals of servers that sent nothing back have no answer here. */
export const rework = ({
  event,
}: Answered<{ readonly rework: Rework | null } | null | undefined>) => ({
  rework: event.output?.rework ?? null,
});
export const acceptance = ({ event }: Answered<Acceptance>) => event.output;
/** Journals of servers that did not count it have no answer here. */
export const cut = ({ event: { output } }: Answered<Partial<Cut> | null | undefined>): Cut => ({
  cut: output?.cut ?? null,
});
export const outcome = ({ event }: Answered<AttemptOutcome>) => ({ outcome: event.output });
export const whyFailed = ({ event }: Answered<AttemptOutcome>) => ({
  failure: event.output.status === 'failed' ? event.output.failure : null,
});
/** Null unless the attempt is parked. */
export const parkedOutcome = ({ event }: Answered<AttemptOutcome>) => ({
  parking: event.output.status === 'parked' ? event.output.parking : null,
});
/** Journals of servers from before tasks could be parked have no answer here. */
export const parkedBackend = ({ event }: Answered<Parking | null | undefined>) => ({
  parking: event.output ?? null,
});
export const verification = ({ event }: Answered<{ readonly failure: Failure | null }>) =>
  event.output;

const asRefusal = (error: unknown): Refusal | null =>
  typeof error === 'object' &&
  error !== null &&
  'code' in error &&
  error.code === 'tracker_unavailable' &&
  'facts' in error
    ? refusal('tracker_unavailable', error.facts as ErrorFacts['tracker_unavailable'])
    : null;

export const trackerUnavailable = ({ event }: Erred): { refusal: Refusal } => ({
  refusal:
    asRefusal(event.error) ??
    refusal('tracker_unavailable', {
      detail: messageOf(event.error),
      remedy: 'repair it, then try again',
    }),
});
export const trackerTimeout = (): { refusal: Refusal } => ({
  refusal: refusal('tracker_unavailable', {
    detail: 'it did not answer in time',
    remedy: 'try again',
  }),
});
export const queueTimeout = (): { refusal: Refusal } => ({
  refusal: refusal('internal', { detail: 'the queue did not answer in time; try again' }),
});
export const isAway = ({ event }: Erred): { away: boolean } => ({
  away: asRefusal(event.error) !== null,
});
export const workFailure = ({ event }: Erred) => ({
  failure: failureOf('internal', messageOf(event.error)),
});
const failureFrom = ({ dependency, status, why }: EndedDependency): Failure => {
  const how = status === 'cancelled' ? 'was cancelled' : 'failed';
  const message = `it depends on ${dependency}, which ${how}${why === '' ? '' : `: ${why}`}`;
  return failureOf('internal', message, { dependency });
};
export const dependencyFailed = ({ event }: { readonly event: EndedDependency }) => ({
  failure: failureFrom(event),
});
export const endedDependency = ({ event }: Answered<EndedDependency | null>) => ({
  ended: event.output,
});
export const endedDependencyFailure = ({ event }: Answered<EndedDependency | null>) => ({
  failure: event.output === null ? null : failureFrom(event.output),
});
export const crashLoop = ({
  context,
  event: { restores },
}: {
  readonly context: TaskContext;
  readonly event: { readonly restores: number };
}) => {
  const message = `its server died ${restores} times in a row while it ran, and no step of it was finished in between, so it may be what ends servers; look at the log of the server, then run it again with: agent retry ${context.taskId}`;
  return { failure: failureOf('crash_loop', message, { restores }) };
};
export const tookTooLong = (what: string) => () => ({
  failure: failureOf('timed_out', `${what} took too long`),
});
export const closeRefused = ({ event: { output } }: Answered<Acceptance>) => {
  const why = output.refusal === null ? '' : `: ${describeRefusal(output.refusal)}`;
  return {
    failure: failureOf('internal', `the tracker refused to close the task${why}`, {
      ...output.refusal,
    }),
  };
};

const longestRequestedPauseMs = dayMs;

/** The pause that the provider asked for (ms), at most a day; 0 without one. */
export const requestedPauseMs = (failure: Failure | null): number => {
  const wanted = failure?.facts['retry_after_ms'];
  return typeof wanted === 'number' ? Math.min(wanted, longestRequestedPauseMs) : 0;
};

export const observedAs = (is: ObservedStatus) =>
  ({
    type: 'observed',
    params: ({ event }: { readonly event: { readonly status: ObservedStatus } }) => ({
      status: event.status,
      is,
    }),
  }) as const;
