import * as read from './task-selectors.ts';
import { taskSetup } from './task-setup.ts';

const { cancel, keeps: tell, observedAs: isSeen, waits, deadlineIn: within } = read;

export const recordRequestReason = { type: 'recordRequestReason', params: read.eventOf } as const;

const restingEvents = {
  run: {
    target: '#task.queued.checking',
    actions: ['forgetLastRun', { type: 'requestRun', params: read.eventOf }],
  },
  review: read.review,
  close: {
    target: '#task.queued.closing',
    actions: [{ type: 'recordReason', params: read.eventOf }, 'recordByHand'],
  },
  cancel: {
    target: '#task.queued.cancelling',
    actions: { type: 'recordReason', params: read.eventOf },
  },
  'dependency.failed': {
    target: '#task.queued.releasing',
    actions: { type: 'recordFailure', params: read.dependencyFailed },
  },
  'tracker.observed': [
    { guard: isSeen('complete'), target: '#task.complete', actions: 'recordByHand' },
    { guard: isSeen('failed'), target: '#task.failed' },
    { guard: isSeen('cancelled'), target: '#task.cancelled' },
  ],
} as const;

const closedByHand = {
  guard: isSeen('complete'),
  target: '#task.complete',
  actions: ['recordOvertaken', 'recordEnd'],
} as const;

const closedWhileQueued = [
  {
    guard: { ...isSeen('complete'), type: 'observedWhileParked' },
    target: 'standingDown',
    actions: 'recordOvertaken',
  },
  closedByHand,
] as const;

const wasParked = { guard: 'isParked', target: 'parked', actions: 'parkAgain' } as const;
const wasParkedLate = { ...wasParked, guard: 'lateWhileParked' } as const;

/** A further run of the same task brings a budget: the task goes on as it is, and counts for it. */
const takesBudget = {
  guard: { type: 'bringsBudget', params: read.eventOf },
  actions: { type: 'takeBudget', params: read.eventOf },
} as const;

const toRefused = {
  target: 'refused',
  actions: { type: 'recordRefusal', params: read.trackerUnavailable },
} as const;
const refuseLate = {
  guard: 'deadlinePassed',
  target: 'refused',
  actions: { type: 'recordRefusal', params: read.trackerTimeout },
} as const;

const openInTracker = <Target extends 'checking' | 'idle'>(says: string, target: Target) =>
  ({
    tags: ['pending', 'answering', 'phase:preparing'],
    meta: { says },
    entry: within(waits.closing),
    invoke: {
      id: 'reopen',
      src: 'reopenInTracker',
      input: read.taskOnly,
      onDone: [
        { guard: { type: 'accepted', params: read.acceptance }, target },
        { target: 'refused', actions: { type: 'recordRefusal', params: read.acceptance } },
      ],
      onError: toRefused,
    },
    on: { DEADLINE: refuseLate },
  }) as const;

/** Ends the attempt of a parked task. Work that cannot be saved now stays in its folder. */
const endParked = <Target extends 'checking' | 'closing' | 'refused' | '#task.complete'>(
  says: string,
  target: Target,
) => {
  const actions = target === '#task.complete' ? 'recordEnd' : 'forgetParking';
  return {
    tags: ['pending', 'answering', 'phase:closing'],
    meta: { says },
    entry: within(waits.releasing),
    invoke: {
      id: 'standDown',
      src: 'standDown',
      input: read.stopInput,
      onDone: { target, actions },
      onError: { target, actions },
    },
    on: { DEADLINE: { guard: 'deadlinePassed', target, actions } },
  } as const;
};

/** States without a slot: at rest, under check, waiting, or changing in the tracker. */
export const queued = taskSetup.createStateConfig({
  tags: 'queued',
  initial: 'idle',
  exit: 'clearDeadline',
  states: {
    idle: {
      tags: ['resting', 'phase:waiting_for_run'],
      meta: { says: 'no run was requested' },
      entry: 'clearDeadline',
      on: restingEvents,
    },
    refused: {
      tags: ['resting', 'refused', 'phase:waiting_for_run'],
      entry: 'clearDeadline',
      meta: { says: 'the last request was refused, with a reason; the task is still queued' },
      always: { guard: 'hasParkedAttempt', target: 'yielding' },
      on: restingEvents,
    },
    checking: {
      tags: ['pending', 'answering', 'quiet', 'phase:preparing'],
      meta: { says: 'looks up whether the task exists and its dependencies are complete' },
      entry: within(waits.lookingUp),
      invoke: {
        id: 'lookUp',
        src: 'lookUp',
        input: read.lookUpInput,
        onDone: { target: 'existing', actions: { type: 'recordFinding', params: read.finding } },
        onError: [
          wasParked,
          { guard: 'betweenAttempts', target: 'backingOff' },
          { guard: 'wasAccepted', target: 'waitingForDependencies' },
          toRefused,
        ],
      },
      on: {
        cancel,
        tell,
        DEADLINE: [
          wasParkedLate,
          { guard: 'lateBetweenAttempts', target: 'backingOff' },
          { guard: 'lateAfterAcceptance', target: 'waitingForDependencies' },
          refuseLate,
        ],
      },
    },
    existing: {
      always: [
        { guard: 'taskExists', target: 'ready' },
        { target: 'refused', actions: 'refuseMissing' },
      ],
    },
    ready: {
      always: [
        { guard: 'dependenciesComplete', target: 'free' },
        { guard: 'waitsForDependencies', target: 'waitingForDependencies' },
        { target: 'refused', actions: 'refuseUnmet' },
      ],
    },
    waitingForDependencies: {
      tags: ['pending', 'phase:waiting_for_dependencies'],
      meta: { says: 'accepted; starts by itself when its dependencies are complete' },
      entry: [within(waits.depending), 'recordAcceptance'],
      invoke: {
        id: 'awaitDependencies',
        src: 'awaitDependencies',
        input: read.dependenciesInput,
        onDone: [
          {
            guard: { type: 'dependencyEnded', params: read.endedDependency },
            target: 'releasing',
            actions: { type: 'recordFailure', params: read.endedDependencyFailure },
          },
          { target: 'checking' },
        ],
        onError: toRefused,
      },
      on: {
        cancel,
        tell,
        'tracker.observed': closedWhileQueued,
        run: takesBudget,
        DEADLINE: { guard: 'deadlinePassed', target: 'refused', actions: 'refuseUnmet' },
      },
    },
    free: {
      always: [
        { guard: 'heldByNobodyElse', target: 'placed' },
        { target: 'refused', actions: 'refuseHeld' },
      ],
    },
    placed: {
      always: [
        { guard: 'projectCanBeUsed', target: 'equipped' },
        { target: 'refused', actions: 'refuseProject' },
      ],
    },
    equipped: {
      always: [
        { guard: 'modelCanBeCalled', target: 'funded' },
        { target: 'refused', actions: 'refuseModel' },
      ],
    },
    funded: {
      always: [
        { guard: 'withinBudget', target: 'asking' },
        { target: 'parked', actions: { type: 'recordLimit', params: read.foundBudget } },
      ],
    },
    asking: {
      tags: ['pending', 'answering', 'quiet', 'phase:waiting_for_slot'],
      meta: { says: 'the supervisor queues the task, or refuses it because the queue is full' },
      entry: within(waits.asking),
      invoke: {
        id: 'requestSlot',
        src: 'requestSlot',
        input: read.slotRequestInput,
        onDone: [
          { guard: { type: 'accepted', params: read.acceptance }, target: 'waitingForSlot' },
          { target: 'refused', actions: { type: 'recordRefusal', params: read.acceptance } },
        ],
        onError: [wasParked, { guard: 'betweenAttempts', target: 'backingOff' }, toRefused],
      },
      on: {
        cancel,
        tell,
        DEADLINE: [
          wasParkedLate,
          { guard: 'lateBetweenAttempts', target: 'backingOff' },
          {
            guard: 'deadlinePassed',
            target: 'refused',
            actions: { type: 'recordRefusal', params: read.queueTimeout },
          },
        ],
      },
    },
    waitingForSlot: {
      tags: ['pending', 'quiet', 'phase:waiting_for_slot'],
      meta: { says: 'waits until fewer agents run than the configured maximum' },
      entry: within(waits.queueing),
      invoke: {
        id: 'waitForSlot',
        src: 'waitForSlot',
        input: read.slotWaitInput,
        onDone: [
          {
            guard: { type: 'meetsLimit', params: read.parkedBackend },
            target: 'parked',
            actions: { type: 'recordLimit', params: read.parkedBackend },
          },
          { guard: 'hasParkedAttempt', target: '#task.started', actions: 'goOn' },
          { target: '#task.started', actions: 'beginAttempt' },
        ],
        onError: {
          target: 'releasing',
          actions: { type: 'recordFailure', params: read.workFailure },
        },
      },
      on: {
        cancel,
        tell,
        run: takesBudget,
        'tracker.observed': closedWhileQueued,
        DEADLINE: {
          guard: 'deadlinePassed',
          target: 'releasing',
          actions: { type: 'recordFailure', params: read.tookTooLong('waiting for a slot') },
        },
      },
    },
    backingOff: {
      tags: ['pending', 'phase:backing_off'],
      meta: { says: 'the last attempt failed temporarily; the next one follows at the deadline' },
      entry: 'setBackoff',
      on: {
        cancel,
        tell,
        run: takesBudget,
        'tracker.observed': closedByHand,
        DEADLINE: { guard: 'deadlinePassed', target: 'checking' },
      },
    },
    parked: {
      tags: ['pending', 'parked', 'phase:backing_off'],
      meta: {
        says: 'waits for the end of a limit of the provider, or for a budget, without a slot; then the attempt begins, or goes on where it was',
      },
      entry: 'setWake',
      on: {
        cancel,
        tell,
        close: [
          {
            guard: 'hasParkedAttempt',
            target: 'givingUp',
            actions: [{ type: 'recordReason', params: read.eventOf }, 'recordByHand'],
          },
          {
            target: 'closing',
            actions: [{ type: 'recordReason', params: read.eventOf }, 'recordByHand'],
          },
        ],
        retry: [
          {
            guard: { type: 'changesRun', params: read.eventOf },
            target: 'restarting',
            actions: [
              'forgetLastRun',
              { type: 'requestRun', params: read.eventOf },
              recordRequestReason,
            ],
          },
          {
            guard: 'hasParkedAttempt',
            target: 'checking',
            actions: ['tryNow', recordRequestReason],
          },
          {
            target: 'checking',
            actions: [{ type: 'requestRun', params: read.eventOf }, 'tryNow', recordRequestReason],
          },
        ],
        run: { ...takesBudget, target: 'checking' },
        'tracker.observed': closedWhileQueued,
        'limit.ended': { guard: { type: 'isLimitOf', params: read.eventOf }, target: 'checking' },
        DEADLINE: { guard: 'deadlinePassed', target: 'checking' },
      },
    },
    givingUp: endParked('a person closes a parked task: saves the work of its attempt', 'closing'),
    restarting: endParked(
      'a person asked for another role or other options: saves the work of the parked attempt',
      'checking',
    ),
    yielding: endParked('a parked task was refused: saves the work of its attempt', 'refused'),
    standingDown: endParked(
      'somebody closed a parked task in the tracker: saves the work of its attempt',
      '#task.complete',
    ),
    releasing: {
      tags: ['pending', 'phase:closing'],
      meta: { says: 'failed before it had a slot; tells the tracker' },
      entry: within(waits.releasing),
      invoke: {
        id: 'release',
        src: 'release',
        input: read.releaseQueued('agent-failed'),
        onDone: { target: '#task.failed', actions: 'recordEnd' },
        onError: { target: '#task.failed', actions: 'recordEnd' },
      },
      on: { DEADLINE: { guard: 'deadlinePassed', target: '#task.failed', actions: 'recordEnd' } },
    },
    cancelling: {
      tags: ['pending', 'answering', 'phase:cancelling'],
      meta: { says: 'cancelled before it had a slot; tells the tracker' },
      entry: within(waits.releasing),
      invoke: {
        id: 'release',
        src: 'release',
        input: read.releaseQueued('agent-cancelled'),
        onDone: { target: '#task.cancelled', actions: 'recordEnd' },
        onError: toRefused,
      },
      on: { cancel: { actions: 'ignore' }, DEADLINE: refuseLate },
    },
    closing: {
      tags: ['pending', 'answering', 'phase:closing'],
      meta: { says: 'a person marked the task complete; tells the tracker' },
      entry: within(waits.closing),
      invoke: {
        id: 'close',
        src: 'closeInTracker',
        input: read.closeInput,
        onDone: [
          {
            guard: { type: 'accepted', params: read.acceptance },
            target: '#task.complete',
            actions: 'recordEnd',
          },
          { target: 'refused', actions: { type: 'recordRefusal', params: read.acceptance } },
        ],
        onError: toRefused,
      },
      on: { close: { actions: 'ignore' }, DEADLINE: refuseLate },
    },
    sendingBack: openInTracker(
      'a review asks for changes: opens the task in the tracker, then runs it',
      'checking',
    ),
    reopening: openInTracker(
      'opens the task in the tracker again; no run was requested yet',
      'idle',
    ),
  },
});
