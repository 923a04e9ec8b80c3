import type { EventObject } from 'xstate';
import { z } from 'zod';
import type { ShownCall } from '../../machines/agent/agent-context.ts';
import { callInWords } from '../../machines/agent/call-in-words.ts';
import { plural } from '../../machines/plural.ts';
import { verdicts } from '../../machines/review.ts';
import { ownOutcome } from '../../machines/task/task-selectors.ts';
import type { TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { NewEntry } from '../store/port.ts';
import { decisionData, entry } from './event-types.ts';

import type { TaskState, TaskView } from './task-view.ts';

/** Part of the last view; the next one is compared with it. */
export interface PreviousView {
  readonly status: string;
  readonly phase: string;
  readonly inputId: string | null;
  /** Epoch ms. */
  readonly changedAt: number;
}

export const previousViewOf = ({
  status,
  phase,
  awaiting,
  updated_at,
}: TaskView): PreviousView => ({
  status,
  phase,
  inputId: awaiting?.input_id ?? null,
  changedAt: Date.parse(updated_at),
});

/** Other changes of a task at rest get no frame. */
const visibleState = ({
  status,
  phase,
  ready,
  title,
  description,
  priority,
  labels,
  unmet_dependencies,
}: TaskView): string =>
  JSON.stringify([status, phase, ready, title, description, priority, labels, unmet_dependencies]);

export const shownIn = (data: string): TaskView =>
  (JSON.parse(data) as { readonly task: TaskView }).task;

const asId = (id: string): TaskId => id as TaskId;

const statusesInTracker = new Map([
  ['complete', 'closed'],
  ['started', 'in_progress'],
  ['queued', 'open'],
  ['failed', 'open'],
  ['cancelled', 'open'],
]);

/** A task from its last view, for outages of the tracker. */
export const trackedFromView = (view: TaskView, actor: string): TrackedTask => ({
  id: asId(view.task_id),
  title: view.title,
  description: view.description,
  status: view.tracker_status ?? statusesInTracker.get(view.status) ?? view.status,
  priority: view.priority,
  labels: view.labels,
  // At rest, somebody else has it.
  assignee: view.status === 'started' && view.phase !== 'started' ? actor : null,
  dependencies: view.dependencies.map(asId),
  unmet: view.unmet_dependencies.map(asId),
  ready: view.ready,
  createdAt: view.created_at,
  updatedAt: view.updated_at,
  closedAt: null,
  closeReason: view.close_reason,
  externalRef: view.source?.url,
});

export const looksSame = (before: TaskView, after: TaskView): boolean =>
  visibleState(before) === visibleState(after);

/** A task as the tracker has it now. `tags`: of the state of its chart, which stays. */
export const trackerSnapshot = (
  view: TaskView,
  at: number,
  tags: Iterable<string> = [],
): NewEntry =>
  entry(view.task_id, view.attempt, 'snapshot', at, {
    machine: 'tracker',
    value: view.status,
    tags: [...tags],
    task: view,
  });

/** Entries for a change in the tracker to a task at rest. */
export const observedEntries = (view: TaskView, at: number): NewEntry[] => {
  const { task_id, attempt, status, phase, progress } = view;
  return [
    entry(task_id, attempt, 'status_update', at, { status, phase, progress }),
    trackerSnapshot(view, at),
  ];
};

interface TransitionFrames {
  readonly machine: 'task' | 'agent';
  readonly value: unknown;
  readonly tags: ReadonlySet<string>;
  readonly cause: unknown;
  readonly at: number;
  readonly attempt: number;
  readonly before: PreviousView | null;
  readonly after: TaskView;
}

const parkedFields = ({ parked_until, parked_reason }: TaskView) =>
  parked_until === undefined ? {} : { parked_until, parked_reason };

/** Entries of a transition: the status if it changed, then the snapshot. */
export const transitionEntries = ({
  machine,
  value,
  tags,
  cause,
  at,
  attempt,
  before,
  after,
}: TransitionFrames): NewEntry[] => {
  const { task_id, status, phase, progress, error } = after;
  const moved = before === null || before.status !== status || before.phase !== phase;
  const gotSlot = status === 'started' && before?.phase === 'waiting_for_slot';
  const update = {
    status,
    phase,
    progress,
    ...parkedFields(after),
    ...(error === undefined ? {} : { error }),
    ...(gotSlot ? { waited_seconds: Math.max(0, at - before.changedAt) / 1_000 } : {}),
  };
  return [
    ...(moved ? [entry(task_id, attempt, 'status_update', at, update)] : []),
    entry(
      task_id,
      attempt,
      'snapshot',
      at,
      { machine, value, tags: [...tags], task: after },
      cause,
    ),
  ];
};

/** An entry when a question is open; after a restart of the server it is asked again. */
export const questionEntries = (
  view: TaskView,
  before: PreviousView | null,
  at: number,
): NewEntry[] => {
  const { task_id, attempt, awaiting } = view;
  if (awaiting === undefined || awaiting.input_id === before?.inputId) return [];
  const type = awaiting.kind === 'input' ? 'input_required' : 'approval_required';
  const isAgain = view.waits_since !== undefined && Date.parse(view.waits_since) < at;
  return [entry(task_id, attempt, type, at, { ...awaiting, ...(isAgain ? { again: true } : {}) })];
};

const requestSchema = z.looseObject({
  type: z.enum(['reopen', 'retry']),
  reason: z.string().nullable(),
});
const reviewCauseSchema = z.looseObject({
  verdict: z.enum(verdicts),
  comments: z.array(z.unknown()),
  rework: z.looseObject({ why: z.string() }).optional(),
});

const reviewDecisions = {
  comment: { kind: 'commented', asks: '' },
  request_changes: { kind: 'sent_back', asks: ', asks for changes' },
  approve: { kind: 'approved', asks: ', approves it' },
} as const;

const reviewData = (cause: EventObject, attempt: number) => {
  const { data: review } = reviewCauseSchema.safeParse(cause);
  if (review === undefined) return null;
  const { kind, asks } = reviewDecisions[review.verdict];
  if (review.rework !== undefined) {
    const { why } = review.rework;
    return decisionData(
      { kind, said: why },
      `another attempt goes on with attempt ${attempt}: ${why}`,
    );
  }
  const said = plural(review.comments.length, 'comment');
  return decisionData({ kind, said }, `a person reviewed attempt ${attempt}: ${said}${asks}`);
};

const requests = {
  close: { kind: 'closed', does: 'closed it' },
  reopen: { kind: 'reopened', does: 'asked to reopen it' },
  retry: { kind: 'retried', does: 'asked to retry it' },
} as const;

/** What is logged of a request of a person. */
export const requestData = (request: keyof typeof requests, reason: string | null) => {
  const { kind, does } = requests[request];
  return reason === null
    ? decisionData({ kind }, `a person ${does}`)
    : decisionData({ kind, said: reason }, `a person ${does}: ${reason}`);
};

const causeData = (cause: EventObject, attempt: number) => {
  if (cause.type === 'review') return reviewData(cause, attempt);
  const { data: request } = requestSchema.safeParse(cause);
  return request === undefined ? null : requestData(request.type, request.reason);
};

/** A log entry for a review, a reopen or a retry. */
export const requestEntries = (
  { task_id, attempt }: TaskView,
  cause: EventObject,
  at: number,
): NewEntry[] => {
  const data = causeData(cause, attempt);
  return data === null ? [] : [entry(task_id, attempt, 'log', at, data)];
};

/** A log entry for a close by hand. It is written with the end: a close may be refused. */
export const closeEntry = (
  { context: { reason } }: TaskState,
  { task_id, attempt }: TaskView,
  at: number,
): NewEntry => entry(task_id, attempt, 'log', at, requestData('close', reason));

const tellSchema = z.looseObject({ text: z.string() });

/** A log entry for what a person said to an agent at work. */
export const tellEntries = (
  { task_id, attempt }: TaskView,
  cause: EventObject,
  at: number,
): NewEntry[] => {
  const { data: said } = tellSchema.safeParse(cause);
  if (cause.type !== 'tell' || said === undefined) return [];
  const message = `a person says: ${said.text}`;
  return [entry(task_id, attempt, 'log', at, { level: 'info', message })];
};

/** A log entry for what people said that no agent read before the end. */
export const unreadEntries = (
  { task_id, attempt }: TaskView,
  unread: readonly string[],
  at: number,
): NewEntry[] => {
  if (unread.length === 0) return [];
  const message = `the task ended before an agent read ${plural(unread.length, 'message')} of a person`;
  return [entry(task_id, attempt, 'log', at, { level: 'warn', message })];
};

const answerSchema = z.looseObject({
  text: z.string().nullable(),
  decision: z.enum(['allow', 'deny']).nullable(),
});

const answerWords = {
  allow: { kind: 'allowed', does: 'allowed it' },
  deny: { kind: 'denied', does: 'denied it' },
} as const;

const answerData = (cause: EventObject, calls: string) => {
  const { data: answer } = answerSchema.safeParse(cause);
  if (answer === undefined) return null;
  const { text, decision } = answer;
  const words = text === null || text === '' ? '' : `: ${text}`;
  const said = words === '' ? {} : { said: text ?? '' };
  if (decision === null)
    return decisionData({ kind: 'answered', ...said }, `a person answered${words}`);
  const { kind, does } = answerWords[decision];
  return decisionData({ kind, about: calls, ...said }, `a person ${does}${words}`);
};

const unansweredData = (fallback: string | null) =>
  fallback === null
    ? null
    : decisionData(
        { kind: 'unanswered', said: fallback },
        `nobody answered in time; it counts as: ${fallback}`,
      );

interface Answered {
  readonly cause: EventObject;
  /** The calls that it may be about. */
  readonly calls: readonly ShownCall[];
  /** The answer that counts when nobody gave one; null: it was answered. */
  readonly fallback: string | null;
}

/** A log entry for what a person answered, or what counts since nobody did. */
export const answerEntries = (
  { task_id, attempt }: TaskView,
  { cause, calls, fallback }: Answered,
  at: number,
): NewEntry[] => {
  const data =
    cause.type === 'respond'
      ? answerData(cause, calls.map(callInWords).join('; '))
      : unansweredData(fallback);
  return data === null ? [] : [entry(task_id, attempt, 'log', at, data)];
};

/** Seconds of work of an attempt: without the time for which it waited. */
const workedSeconds = (
  { startedAt }: TaskState['context'],
  { waited_seconds: waited = 0 }: TaskView,
  until: number,
): number => (startedAt === null ? 0 : Math.max(0, (until - startedAt) / 1000 - waited));

/** A log entry when a failed attempt is followed by another one. */
export const retryEntries = (
  { context }: TaskState,
  view: TaskView,
  before: PreviousView | null,
  at: number,
): NewEntry[] => {
  const { task_id, attempt, phase, usage } = view;
  const { failure, deadlineAt, retriesLeft, role, parked } = context;
  if (phase !== 'backing_off' || before?.phase === phase || failure === null) return [];
  if (parked !== undefined) return [];
  const pause =
    deadlineAt === null ? '' : ` in ${Math.max(0, Math.round((deadlineAt - at) / 1000))} s`;
  // The retry that follows is spent already.
  const attempts = attempt + retriesLeft + 1;
  const message = `attempt ${attempt} of ${attempts} failed: ${failure.code}: ${failure.message}; the next one begins${pause}`;
  const seconds = workedSeconds(context, view, at);
  const ended = { role, execution_seconds: seconds, usage };
  return [
    entry(task_id, attempt, 'log', at, {
      level: 'warn',
      message,
      attempts,
      attempt_ended: role === null ? undefined : ended,
    }),
  ];
};

const endingFrame = (task: TaskState, view: TaskView) => {
  const { completedAt, reason, role } = task.context;
  // A task that was closed by hand has no time of work.
  const isOurs = view.status !== 'complete' || ownOutcome(task.context) !== null;
  const seconds =
    !isOurs || completedAt === null ? 0 : workedSeconds(task.context, view, completedAt);
  const { result, results_path, error, usage } = view;
  const common = {
    attempt: view.attempt,
    role: role ?? undefined,
    usage,
    execution_seconds: seconds,
  };
  const path = results_path === undefined ? {} : { results_path };
  if (view.status === 'complete')
    return [
      'completed',
      {
        ...common,
        progress: 1,
        result: result ?? '',
        ...path,
        ...(isOurs ? {} : { by_hand: true }),
      },
    ] as const;
  if (view.status === 'failed')
    return ['failed', { ...common, error: error ?? null, ...path }] as const;
  return ['cancelled', { ...common, reason, ...path }] as const;
};

/** Ends the streams of those who follow the task. */
export const closingEntry = ({ task_id, attempt, status }: TaskView, at: number): NewEntry =>
  entry(task_id, attempt, 'stream_closed', at, { task_id, message: `task is ${status}` });

/** The last entries of an attempt: one of completed, failed, cancelled, then stream_closed. */
export const endingEntries = (task: TaskState, view: TaskView, at: number): NewEntry[] => {
  const [type, data] = endingFrame(task, view);
  return [entry(view.task_id, view.attempt, type, at, data), closingEntry(view, at)];
};
