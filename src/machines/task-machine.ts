import type { TaskId } from './task.ts';
import { queued } from './task-queued.ts';
import * as read from './task-selectors.ts';
import { taskSetup } from './task-setup.ts';
import { started } from './task-started.ts';

const { isSeen } = read;

/** A task that is over follows the tracker when somebody reopened or closed it there. */
const followTracker = [
  { guard: isSeen('open'), target: 'queued', actions: 'forgetLastRun' },
  { guard: isSeen('complete'), target: 'complete' },
  { guard: isSeen('failed'), target: 'failed' },
  { guard: isSeen('cancelled'), target: 'cancelled' },
] as const;

const because = { type: 'recordRequestReason', params: read.payload } as const;

/** Back to queued by retry: it runs at once when it is known which role shall run it. */
const retry = [
  {
    guard: { type: 'roleKnown', params: read.payload },
    target: '#task.queued.checking',
    actions: ['forgetLastRun', { type: 'requestRun', params: read.payload }, because],
  },
  { target: '#task.queued.reopening', actions: ['forgetLastRun', because] },
] as const;

const close = { target: '#task.queued.closing', actions: { type: 'recordReason', params: read.payload } } as const;

/**
 * One task, from queued over started to complete (Spec 3). It runs only when it exists and every dependency is
 * complete, works only while it holds a slot, and is closed in the tracker only after its results are on disk.
 * `started` means exactly: a slot is held and an attempt is live (ADR 0003).
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
        close: { actions: 'keep' },
        reopen: { target: '#task.queued.reopening', actions: ['forgetLastRun', because] },
        'tracker.observed': followTracker,
      },
    },
    failed: {
      tags: ['failed', 'settled'],
      meta: { says: 'the last attempt failed and none will follow by itself' },
      on: { retry, close, 'tracker.observed': followTracker },
    },
    cancelled: {
      tags: ['cancelled', 'settled'],
      meta: { says: 'the last attempt was cancelled' },
      on: { retry, close, cancel: { actions: 'keep' }, 'tracker.observed': followTracker },
    },
  },
});
