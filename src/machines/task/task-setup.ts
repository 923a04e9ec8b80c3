import { assign, setup } from 'xstate';
import type { Tell } from '../agent/agent-context.ts';
import { hasRoomFor, keptAfter, keptForNext, withMessage } from '../agent/agent-messages.ts';

import { declareActor } from '../declare-actor.ts';
import { type Refusal, refusal } from '../errors.ts';
import { jitter } from '../jitter.ts';
import { shortestParkMs } from '../parking.ts';
import { addReview, endReview, type ReviewCommand, type Rework, sentBack } from '../review.ts';
import {
  type AttemptInput,
  type AttemptOutcome,
  type Failure,
  type Finding,
  type KeptMessages,
  limitNameOf,
  type Parking,
  type Role,
  type RunOptions,
  type Stamped,
  type TaskId,
} from '../task.ts';
import { runGuards, runRefusals, waitsForDependencies } from './run-guards.ts';
import type {
  Acceptance,
  Cut,
  EndedDependency,
  ObservedStatus,
  Parked,
  TaskContext,
  TaskEvent,
  TaskInput,
} from './task-context.ts';
import {
  type EndLabel,
  hasParkedAttempt,
  longestTrackerOutageMs,
  ownOutcome,
  requestedPauseMs,
  roundsAtMost,
  type slotRequestInput,
  type slotWaitInput,
} from './task-selectors.ts';

type RequestedRun = {
  readonly role: Role | null;
  readonly options: RunOptions | null;
  readonly maxRetries: number;
  readonly by?: string | undefined;
};
type Limited = { readonly parking: Parking | null };
type TaskOnly = { readonly taskId: TaskId };

/** The end of a task is not the work of its attempt, although that was done. */
const hasOwnOutcome = ({ context }: { context: TaskContext }): true | undefined =>
  ownOutcome(context) !== null || context.byHand === true ? true : undefined;

/** Before a parked task is looked at again after that failed (ms). */
const limitLookMs = 60_000;

export const taskSetup = setup({
  types: {
    context: {} as TaskContext,
    events: {} as TaskEvent,
    input: {} as TaskInput,
  },
  actors: {
    lookUp: declareActor<Finding, TaskOnly & { readonly role: Role; readonly options: RunOptions }>(
      'lookUp',
    ),
    awaitDependencies: declareActor<
      EndedDependency | null,
      TaskOnly & { readonly unmet: readonly TaskId[] }
    >('awaitDependencies'),
    requestSlot: declareActor<Acceptance, ReturnType<typeof slotRequestInput>>('requestSlot'),
    /** Null with a slot; else its backend is parked. */
    waitForSlot: declareActor<Parking | null, ReturnType<typeof slotWaitInput>>('waitForSlot'),
    holdSlot: declareActor<void, TaskOnly & { readonly role: Role }>('holdSlot'),
    claim: declareActor<Acceptance, AttemptInput>('claim'),
    runAttempt: declareActor<
      AttemptOutcome,
      AttemptInput & {
        readonly feedback: TaskContext['feedback'];
        readonly kept?: KeptMessages;
      }
    >('runAttempt'),
    verify: declareActor<{ readonly failure: Failure | null }, AttemptInput>('verify'),
    recordResults: declareActor<
      { readonly toMerge: boolean },
      AttemptInput & { readonly outcome: AttemptOutcome | null }
    >('recordResults'),
    /** The work is not merged, and is to be changed so that it can be; null: the attempt ends as it is. */
    mergeWork: declareActor<{ readonly rework: Rework | null }, AttemptInput>('mergeWork'),
    closeInTracker: declareActor<
      Acceptance,
      TaskOnly & {
        readonly attempt: number;
        readonly role: Role | null;
        readonly reason: string | null;
      }
    >('closeInTracker'),
    reopenInTracker: declareActor<Acceptance, TaskOnly>('reopenInTracker'),
    standDown: declareActor<Cut, AttemptInput & { readonly reason: string | null }>('standDown'),
    parkAttempt: declareActor<Acceptance, AttemptInput>('parkAttempt'),
    release: declareActor<
      Acceptance & Partial<Cut>,
      TaskOnly & { readonly attempt: number; readonly label: EndLabel }
    >('release'),
  },
  guards: {
    ...runGuards,
    hasRoomFor: ({ context: { kept } }, message: Tell) =>
      hasRoomFor({ unread: kept?.texts }, message),
    /** Another attempt follows the one that failed. */
    keepsForNext: ({ context }, message: Tell) =>
      runGuards.hasAttemptsLeft({ context }) &&
      hasRoomFor({ unread: context.kept?.texts }, message),
    lateBetweenAttempts: ({ context, event }) =>
      context.failure !== null && context.deadlineAt !== null && event.at >= context.deadlineAt,
    deadlinePassed: ({ context, event }) =>
      context.deadlineAt !== null && event.at >= context.deadlineAt,
    agentHasTime: ({ context, event }, { agentHasTime }: { agentHasTime?: boolean }) =>
      agentHasTime === true && context.deadlineAt !== null && event.at >= context.deadlineAt,
    /** Another attempt follows a failed one: no caller waits for an answer. */
    betweenAttempts: ({ context }) => context.failure !== null,
    waitsForDependencies,
    isParked: ({ context }) => context.parked !== undefined,
    lateWhileParked: ({ context, event }) =>
      context.parked !== undefined && context.deadlineAt !== null && event.at >= context.deadlineAt,
    hasParkedAttempt: ({ context }) => hasParkedAttempt(context),
    isLimitOf: ({ context: { parked } }, { backend }: { backend: string }) =>
      parked !== undefined && limitNameOf(parked) === backend,
    /** The run names an amount, or the one before used up its budget. */
    bringsBudget: ({ context: { parked } }, { options }: RequestedRun) =>
      options?.run !== undefined &&
      (parked?.budget === 'run' || options.run.maxCostUsd !== undefined),
    meetsLimit: (_, { parking }: Limited) => parking !== null,
    changesRun: ({ context }, { role, options }: RequestedRun) =>
      hasParkedAttempt(context) && ((role ?? context.role) !== context.role || options !== null),
    dependencyEnded: (_, { ended }: { ended: EndedDependency | null }) => ended !== null,
    wasAccepted: ({ context }) => context.accepted === true,
    lateAfterAcceptance: ({ context, event }) =>
      context.accepted === true && context.deadlineAt !== null && event.at >= context.deadlineAt,
    trackerIsAway: (_, { away }: { away: boolean }) => away,
    trackerGoneTooLong: ({ context, event }) =>
      event.at - (context.trackerAwaySince ?? event.at) >= longestTrackerOutageMs,
    roleKnown: ({ context }, { role }: { role: Role | null }) => (role ?? context.role) !== null,
    reviewsAnAttempt: ({ context }, { attempt }: ReviewCommand) =>
      context.attempt > 0 && (attempt ?? context.attempt) <= context.attempt,
    requestsChanges: ({ context }, { verdict, attempt }: ReviewCommand) =>
      verdict === 'request_changes' &&
      context.attempt > 0 &&
      (attempt ?? context.attempt) <= context.attempt,
    accepted: (_, { refusal }: Acceptance) => refusal === null,
    workDone: (_, { outcome }: { outcome: AttemptOutcome }) => outcome.status === 'done',
    mustVerify: ({ context }, { outcome }: { outcome: AttemptOutcome }) =>
      outcome.status === 'done' &&
      ((context.options.verify?.length ?? 0) > 0 || context.review?.rework !== undefined),
    /** The work is on its own branch, and the configuration merges it. */
    mustMerge: (_, { toMerge }: { toMerge: boolean }) => toMerge,
    mustRework: (_, { rework }: { rework: Rework | null }) => rework !== null,
    mayMendIt: ({ context }) => (context.feedback?.round ?? 0) < roundsAtMost,
    verified: (_, { failure }: { failure: Failure | null }) => failure === null,
    observedWhileParked: (
      { context },
      { status, is }: { status: ObservedStatus; is: ObservedStatus },
    ) => status === is && hasParkedAttempt(context),
    observed: (_, { status, is }: { status: ObservedStatus; is: ObservedStatus }) => status === is,
  },
  actions: {
    forgetLastRun: assign({
      refusal: null,
      failure: null,
      outcome: null,
      reason: null,
      requestReason: undefined,
      startedAt: null,
      completedAt: null,
      trackerAwaySince: null,
      trackerTries: 0,
      parked: undefined,
      byHand: undefined,
      // Those of a run that is over are named in its result.
      kept: ({ context }) => (context.completedAt === null ? context.kept : undefined),
    }),
    requestRun: assign({
      role: ({ context }, { role }: RequestedRun) => role ?? context.role,
      options: ({ context }, { options }: RequestedRun) => options ?? context.options,
      retriesLeft: (_, { maxRetries }: RequestedRun) => maxRetries,
      runBy: ({ context: { runBy } }, { by }: RequestedRun) =>
        by === undefined || runBy?.includes(by) === true ? runBy : [...(runBy ?? []), by],
      submittedAt: ({ event }) => event.at,
      accepted: false,
    }),
    recordAcceptance: assign({ accepted: true }),
    recordFinding: assign({ finding: (_, { finding }: { finding: Finding }) => finding }),
    refuseMissing: assign({ refusal: runRefusals.taskExists }),
    refuseUnmet: assign({ refusal: runRefusals.dependenciesComplete }),
    refuseHeld: assign({ refusal: runRefusals.heldByNobodyElse }),
    refuseProject: assign({ refusal: runRefusals.projectCanBeUsed }),
    refuseModel: assign({ refusal: runRefusals.modelCanBeCalled }),
    recordRefusal: assign({ refusal: (_, { refusal }: { refusal: Refusal | null }) => refusal }),
    beginAttempt: assign({
      attempt: ({ context }) => context.attempt + 1,
      startedAt: ({ event }) => event.at,
      feedback: null,
      cut: undefined,
      parked: undefined,
      parkedMs: 0,
      kept: ({ context }) => keptForNext(context.kept),
    }),
    /** The attempt that was parked has a slot again. */
    goOn: assign({
      parkedMs: ({ context, event }) =>
        (context.parkedMs ?? 0) + Math.max(0, event.at - (context.parked?.since ?? event.at)),
      parked: ({ context: { parked }, event }) => parked && { ...parked, since: event.at },
    }),
    forgetParking: assign({ parked: undefined }),
    recordLimit: assign({
      parked: ({ context, event }, { parking }: Limited): Parked | undefined => {
        if (parking === null) return context.parked;
        const { since = event.at, hasBegun = false } = context.parked ?? {};
        return { ...parking, since, hasBegun, triesNow: false };
      },
    }),
    recordParking: assign({
      parked: ({ event }, { parking }: Limited): Parked | undefined =>
        parking === null
          ? undefined
          : { ...parking, since: event.at, hasBegun: true, triesNow: false },
    }),
    takeBudget: assign({
      options: ({ context }, { options }: RequestedRun) => ({
        ...context.options,
        run: options?.run,
      }),
    }),
    tryNow: assign({
      parked: ({ context: { parked } }) => parked && { ...parked, triesNow: true },
    }),
    endLimit: assign({
      parked: ({ context: { parked }, event }) => parked && { ...parked, until: event.at },
    }),
    /** The look at the task failed; its reason to wait stays the same. */
    parkAgain: assign({
      parked: ({ context: { parked }, event }) =>
        parked && { ...parked, until: event.at + limitLookMs, triesNow: false },
    }),
    setWake: assign({
      deadlineAt: ({ context: { parked }, event }) =>
        Math.max(parked?.until ?? 0, event.at + shortestParkMs),
    }),
    sendBack: assign({
      feedback: ({ context }, { failure }: { failure: Failure | null }) => ({
        round: (context.feedback?.round ?? 0) + 1,
        text: [failure?.message, failure?.facts['output']]
          .filter((text) => text)
          .join('. Its output ends with:\n\n'),
      }),
    }),
    recordOutcome: assign({ outcome: (_, { outcome }: { outcome: AttemptOutcome }) => outcome }),
    recordCut: assign({ cut: ({ context }, { cut }: Cut) => cut ?? context.cut }),
    keepMessage: assign({ kept: ({ context }, { text }: Tell) => withMessage(context.kept, text) }),
    keepUnread: assign({
      kept: ({ context }, { outcome }: { outcome: AttemptOutcome }) =>
        keptAfter(context.kept, outcome),
    }),
    recordFailure: assign({ failure: (_, { failure }: { failure: Failure | null }) => failure }),
    recordAway: assign({
      refusal: (_, { refusal }: { refusal: Refusal | null }) => refusal,
      trackerAwaySince: ({ context, event }) => context.trackerAwaySince ?? event.at,
      trackerTries: ({ context }) => (context.trackerTries ?? 0) + 1,
    }),
    recordBack: assign({ refusal: null, trackerAwaySince: null, trackerTries: 0 }),
    setTrackerPause: assign({
      deadlineAt: ({ context, event }) =>
        event.at + Math.min(1_000 * 2 ** (context.trackerTries - 1), 30_000),
    }),
    recordByHand: assign({ byHand: hasOwnOutcome }),
    recordOvertaken: assign({
      byHand: hasOwnOutcome,
      reason: 'somebody closed the task in the tracker while the attempt was running',
    }),
    recordTaken: assign({
      refusal: ({ context }, { holder }: { holder?: string | null }) =>
        refusal('tracker_conflict', { task_id: context.taskId, holder: holder ?? 'somebody' }),
      reason: 'somebody took the task in the tracker while the attempt was running',
    }),
    recordGivenUp: assign({
      failure: ({ context }): Failure => ({
        code: 'internal',
        message: 'the tracker could not be told how the attempt ended',
        facts: { ...context.refusal },
        retryable: false,
      }),
    }),
    recordRequestReason: assign({
      requestReason: (_, { reason }: { reason: string | null }) => reason ?? undefined,
    }),
    recordReview: assign({
      review: ({ context }, event: Stamped<ReviewCommand>) =>
        addReview(context.review, event, context.attempt),
    }),
    recordAnswers: assign({
      review: ({ context: { review, attempt, outcome } }) =>
        review === undefined
          ? undefined
          : endReview(review, attempt, outcome?.status === 'done' ? (outcome.answers ?? []) : []),
    }),
    recordRework: assign({
      review: ({ context: { review, attempt } }, { rework }: { rework: Rework | null }) =>
        rework === null ? review : sentBack(review, attempt, rework),
    }),
    recordReason: assign({ reason: (_, { reason }: { reason: string | null }) => reason }),
    recordEnd: assign({ completedAt: ({ event }) => event.at, parked: undefined }),
    spendRetry: assign({ retriesLeft: ({ context }) => context.retriesLeft - 1 }),
    setDeadline: assign({
      deadlineAt: ({ event }, { afterMs }: { afterMs: number }) => event.at + afterMs,
    }),
    /**
     * 2, 4, 8 … 300 s, or the pause that the provider asked for, plus up to a quarter, so that
     * tasks do not retry together.
     */
    setBackoff: assign({
      deadlineAt: ({ context: { attempt, taskId, failure }, event }) => {
        const pause = Math.max(1_000 * Math.min(2 ** attempt, 300), requestedPauseMs(failure));
        return event.at + Math.round(pause * (1 + jitter(`${taskId}#${attempt}`) / 4));
      },
    }),
    clearDeadline: assign({ deadlineAt: null }),
    ignore: () => {},
  },
});
