import { describeRefusal, type ErrorFacts, type Refusal, refusal } from './errors.ts';
import type { AttemptOutcome, Failure, Finding, TaskId } from './task.ts';
import type { ObservedStatus, TaskContext, Verdict } from './task-context.ts';

/** How the chart reads its events: each helper turns what arrived into the params of a guard, an action or a slot. */

type Now = { readonly context: TaskContext };
type Erred = { readonly event: { readonly error: unknown } };
type Answered<Output> = { readonly event: { readonly output: Output } };

const words = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);
const failure = (code: Failure['code'], message: string, facts = {}): Failure => ({
  code,
  message,
  facts,
  retryable: false,
});

const minute = 60_000;
/** How long a task may stay in a state that waits for something (ms); each is left by DEADLINE at the latest. */
export const waits = {
  lookingUp: minute,
  asking: minute,
  queueing: 24 * 60 * minute,
  claiming: 2 * minute,
  working: 24 * 60 * minute,
  verifying: 30 * minute,
  recording: 5 * minute,
  merging: 5 * minute,
  closing: 2 * minute,
  releasing: 2 * minute,
} as const;

/** How often work that does not pass is sent back to its agent. */
export const roundsAtMost = 2;
/** How long the tracker is waited for before an attempt is given up over it. */
export const trackerPatienceMs = 24 * 60 * minute;

export const within = (afterMs: number) => ({ type: 'setDeadline', params: { afterMs } }) as const;
export const payload = <Event>({ event }: { event: Event }): Event => event;

export const taskOnly = ({ context }: Now) => ({ taskId: context.taskId });
export const seat = ({ context }: Now) => ({ taskId: context.taskId, role: context.role ?? ('engineer' as const) });
export const wish = ({ context }: Now) => ({ ...seat({ context }), options: context.options });
export const place = ({ context }: Now) => ({ ...seat({ context }), submittedAt: context.submittedAt ?? 0 });
/** A task between two attempts had its place before. */
export const request = ({ context }: Now) => ({ ...place({ context }), admitted: context.failure !== null });
export const attempt = ({ context }: Now) => ({
  ...seat({ context }),
  attempt: context.attempt,
  options: context.options,
});
export const work = ({ context }: Now) => ({ ...attempt({ context }), feedback: context.feedback });
export const report = ({ context }: Now) => ({ ...attempt({ context }), outcome: context.outcome });
export const evidence = ({ context }: Now) => ({ ...attempt({ context }), reason: context.reason });
/** How the tracker is told of an end; a task that another attempt will follow gets no label. */
export type EndLabel = 'agent-failed' | 'agent-cancelled' | null;
export const ending =
  (label: EndLabel) =>
  ({ context }: Now) => ({ taskId: context.taskId, attempt: context.attempt, label });
/** Of a run that never had a slot: nothing of an attempt is to be ended or reported. */
export const unbegun =
  (label: EndLabel) =>
  ({ context }: Now) => ({ taskId: context.taskId, attempt: 0, label });
export const willRetry = ({ failure, retriesLeft }: TaskContext): boolean =>
  failure?.retryable === true && retriesLeft > 0;
export const failureEnding = ({ context }: Now) => ending(willRetry(context) ? null : 'agent-failed')({ context });
export const closing = ({ context }: Now) => ({
  taskId: context.taskId,
  attempt: context.attempt,
  role: context.role,
  reason: context.reason,
});

export const finding = ({ event }: Answered<Finding>) => ({ finding: event.output });
export const recorded = ({ event }: Answered<{ readonly toMerge: boolean }>) => event.output;
export const verdict = ({ event }: Answered<Verdict>) => event.output;
export const outcome = ({ event }: Answered<AttemptOutcome>) => ({ outcome: event.output });
export const whyFailed = ({ event }: Answered<AttemptOutcome>) => ({
  failure: event.output.status === 'failed' ? event.output.failure : null,
});
export const verification = ({ event }: Answered<{ readonly failure: Failure | null }>) => event.output;

/** A refusal of our own came as data, with its facts. */
const asRefusal = (error: unknown): Refusal | null =>
  typeof error === 'object' &&
  error !== null &&
  'code' in error &&
  error.code === 'tracker_unavailable' &&
  'facts' in error
    ? refusal('tracker_unavailable', error.facts as ErrorFacts['tracker_unavailable'])
    : null;

export const trackerAway = ({ event }: Erred): { refusal: Refusal } => ({
  refusal:
    asRefusal(event.error) ??
    refusal('tracker_unavailable', { detail: words(event.error), remedy: 'mend it, then ask again' }),
});
export const trackerLate = (): { refusal: Refusal } => ({
  refusal: refusal('tracker_unavailable', { detail: 'it did not answer in time', remedy: 'ask again' }),
});
export const queueLate = (): { refusal: Refusal } => ({
  refusal: refusal('internal', { detail: 'the queue did not answer in time; ask again' }),
});
/** Whether an error says that the tracker cannot be used now, and may be later. */
export const isAway = ({ event }: Erred): { away: boolean } => ({ away: asRefusal(event.error) !== null });
export const broken = ({ event }: Erred) => ({ failure: failure('internal', words(event.error)) });
export const dependencyFailed = ({ event }: { event: { readonly dependency: TaskId; readonly why: string } }) => ({
  failure: failure('internal', `it depends on ${event.dependency}, which failed: ${event.why}`, {
    dependency: event.dependency,
  }),
});
export const overdue = (what: string) => () => ({ failure: failure('timed_out', `${what} took too long`) });
export const closeRefused = ({ event: { output } }: Answered<Verdict>) => {
  const why = output.refusal === null ? '' : `: ${describeRefusal(output.refusal)}`;
  return { failure: failure('internal', `the tracker refused to close the task${why}`, { ...output.refusal }) };
};

const longestWantedMs = 24 * 60 * minute;

/** How long the provider wants to be left alone (ms), a day at most; 0 when it did not say. */
export const wantedPause = (failure: Failure | null): number => {
  const wanted = failure?.facts['retry_after_ms'];
  return typeof wanted === 'number' ? Math.min(wanted, longestWantedMs) : 0;
};

/** The guard `observed` for one word of the tracker. */
export const isSeen = (is: ObservedStatus) =>
  ({
    type: 'observed',
    params: ({ event }: { readonly event: { readonly status: ObservedStatus } }) => ({ status: event.status, is }),
  }) as const;
