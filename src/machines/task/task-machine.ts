import type { SnapshotFrom } from 'xstate';
import type { TaskId } from '../task.ts';
import { queued, recordRequestReason } from './task-queued.ts';
import * as read from './task-selectors.ts';
import { taskSetup } from './task-setup.ts';
import { started } from './task-started.ts';

const { observedAs: isSeen } = read;

const followOpen = {
  guard: isSeen('open'),
  target: 'queued',
  actions: 'forgetLastRun',
} as const;
const followEnd = [
  { guard: isSeen('failed'), target: 'failed' },
  { guard: isSeen('cancelled'), target: 'cancelled' },
] as const;
const followTracker = [
  followOpen,
  { guard: isSeen('complete'), target: 'complete', actions: 'recordByHand' },
  ...followEnd,
] as const;

const retry = [
  {
    guard: { type: 'roleKnown', params: read.eventOf },
    target: '#task.queued.checking',
    actions: ['forgetLastRun', { type: 'requestRun', params: read.eventOf }, recordRequestReason],
  },
  { target: '#task.queued.reopening', actions: ['forgetLastRun', recordRequestReason] },
] as const;

const close = {
  target: '#task.queued.closing',
  actions: [{ type: 'recordReason', params: read.eventOf }, 'recordByHand'],
} as const;

/**
 * One task: queued, started, complete. It starts only when it exists and its dependencies are
 * complete, runs only with a slot, and is closed in the tracker only after its results are on disk.
 * `started` means: it has a slot, held or lent, and an attempt is live (ADR 0003, 0017).
 */
export const taskMachine = taskSetup.createMachine({
  id: 'task',
  context: ({ input }) => ({
    taskId: input?.taskId ?? ('' as TaskId),
    role: null,
    options: {},
    attempt: 0,
    retriesLeft: 0,
    finding: null,
    refusal: null,
    outcome: null,
    feedback: null,
    failure: null,
    reason: null,
    submittedAt: null,
    startedAt: null,
    completedAt: null,
    trackerAwaySince: null,
    trackerTries: 0,
    deadlineAt: null,
  }),
  initial: 'queued',
  states: {
    queued,
    started,
    complete: {
      tags: ['complete', 'settled'],
      meta: { says: 'closed in the tracker' },
      on: {
        close: { actions: 'ignore' },
        review: read.reviewOfComplete,
        reopen: {
          target: '#task.queued.reopening',
          actions: ['forgetLastRun', recordRequestReason],
        },
        'tracker.observed': [
          followOpen,
          { guard: isSeen('complete'), target: 'complete' },
          ...followEnd,
        ],
      },
    },
    failed: {
      tags: ['failed', 'settled'],
      meta: { says: 'the last attempt failed and no automatic one follows' },
      on: { retry, review: read.review, close, 'tracker.observed': followTracker },
    },
    cancelled: {
      tags: ['cancelled', 'settled'],
      meta: { says: 'the last attempt was cancelled' },
      on: {
        retry,
        review: read.review,
        close,
        cancel: { actions: 'ignore' },
        'tracker.observed': followTracker,
      },
    },
  },
});

export type TaskMachine = typeof taskMachine;
export type TaskSnapshot = SnapshotFrom<typeof taskMachine>;
