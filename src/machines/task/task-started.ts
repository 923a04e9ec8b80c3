import * as read from './task-selectors.ts';
import { taskSetup } from './task-setup.ts';

const { cancel, keeps: tell, observedAs: isSeen, waits, deadlineIn: within } = read;

/** Tells the tracker after its outage. */
const tellLater = (
  what:
    | 'claiming'
    | 'recording'
    | 'merging'
    | 'returning'
    | 'closing'
    | 'failing'
    | 'parking'
    | 'cancelling',
) =>
  ({
    guard: { type: 'trackerIsAway', params: read.isAway },
    target: `telling.${what}`,
    actions: { type: 'recordAway', params: read.trackerUnavailable },
  }) as const;
const tellLateLater = (what: 'claiming' | 'closing' | 'parking') =>
  ({
    guard: 'deadlinePassed',
    target: `telling.${what}`,
    actions: { type: 'recordAway', params: read.trackerTimeout },
  }) as const;

const again = (
  what: 'recording' | 'merging' | 'returning' | 'closing' | 'failing' | 'parking' | 'cancelling',
) =>
  [
    {
      guard: 'trackerGoneTooLong',
      target: '#task.failed',
      actions: ['recordGivenUp', 'recordEnd'],
    },
    { guard: 'deadlinePassed', target: `#task.started.${what}` },
  ] as const;

/** The limit ended before the attempt was parked: it goes on as soon as it is. */
const limitEnds = {
  guard: { type: 'isLimitOf', params: read.eventOf },
  actions: 'endLimit',
} as const;

/** Somebody closed or took the task in the tracker: the attempt stops, its results stay. */
const changedInTracker = [
  { guard: isSeen('complete'), target: 'standingDown', actions: 'recordOvertaken' },
  {
    guard: isSeen('elsewhere'),
    target: 'yielding',
    actions: { type: 'recordTaken', params: read.eventOf },
  },
] as const;

const recordCut = { type: 'recordCut', params: read.cut } as const;
const keepUnread = { type: 'keepUnread', params: read.outcome } as const;

const toFailing = {
  target: 'failing',
  actions: { type: 'recordFailure', params: read.workFailure },
} as const;
const failLate = (what: string) =>
  ({
    guard: 'deadlinePassed',
    target: 'failing',
    actions: { type: 'recordFailure', params: read.tookTooLong(what) },
  }) as const;

const recordCrashLoop = { type: 'recordFailure', params: read.crashLoop } as const;
/** Its end may be what ends servers: nothing more is tried. */
const giveUp = { target: '#task.failed', actions: [recordCrashLoop, 'recordEnd'] } as const;

/**
 * States with a slot: claim, work, verify, write results, merge, close; or fail or cancel, until
 * nothing runs.
 */
export const started = taskSetup.createStateConfig({
  tags: ['started', 'pending', 'live'],
  meta: { says: 'the task has a slot and a live attempt' },
  exit: 'clearDeadline',
  invoke: {
    id: 'holdSlot',
    src: 'holdSlot',
    input: read.taskAndRole,
    onDone: { actions: 'ignore' },
    onError: { target: '.failing', actions: { type: 'recordFailure', params: read.workFailure } },
  },
  on: { 'restores.spent': { target: '.failing', actions: recordCrashLoop } },
  initial: 'claiming',
  states: {
    claiming: {
      tags: ['quiet', 'phase:preparing'],
      meta: { says: 'marks the task started in the tracker' },
      entry: within(waits.claiming),
      invoke: {
        id: 'claim',
        src: 'claim',
        input: read.attemptOf,
        onDone: [
          {
            guard: { type: 'accepted', params: read.acceptance },
            target: 'working',
            actions: ['recordBack', 'forgetParking'],
          },
          {
            target: '#task.queued.refused',
            actions: { type: 'recordRefusal', params: read.acceptance },
          },
        ],
        onError: [
          tellLater('claiming'),
          {
            target: '#task.queued.refused',
            actions: { type: 'recordRefusal', params: read.trackerUnavailable },
          },
        ],
      },
      on: { cancel, tell, DEADLINE: tellLateLater('claiming') },
    },
    working: {
      tags: ['quiet', 'phase:preparing'],
      meta: { says: 'the agent of the role works on the task' },
      entry: within(waits.working),
      invoke: {
        id: 'work',
        src: 'runAttempt',
        input: read.runInput,
        onDone: [
          {
            guard: { type: 'meetsLimit', params: read.parkedOutcome },
            target: 'parking',
            actions: [keepUnread, { type: 'recordParking', params: read.parkedOutcome }],
          },
          {
            guard: { type: 'mustVerify', params: read.outcome },
            target: 'verifying',
            actions: [keepUnread, { type: 'recordOutcome', params: read.outcome }],
          },
          {
            guard: { type: 'workDone', params: read.outcome },
            target: 'recording',
            actions: [keepUnread, { type: 'recordOutcome', params: read.outcome }],
          },
          {
            target: 'failing',
            actions: [
              keepUnread,
              { type: 'recordOutcome', params: read.outcome },
              { type: 'recordFailure', params: read.whyFailed },
            ],
          },
        ],
        onError: toFailing,
      },
      on: {
        cancel,
        tell,
        'tracker.observed': changedInTracker,
        DEADLINE: [
          { guard: { type: 'agentHasTime', params: read.eventOf }, actions: within(waits.working) },
          failLate('the attempt'),
        ],
      },
    },
    verifying: {
      tags: 'phase:verifying',
      meta: { says: 'the commands of options.verify must succeed before the task may complete' },
      entry: within(waits.verifying),
      invoke: {
        id: 'verify',
        src: 'verify',
        input: read.attemptOf,
        onDone: [
          { guard: { type: 'verified', params: read.verification }, target: 'recording' },
          {
            guard: 'mayMendIt',
            target: 'working',
            actions: { type: 'sendBack', params: read.verification },
          },
          { target: 'failing', actions: { type: 'recordFailure', params: read.verification } },
        ],
        onError: toFailing,
      },
      on: {
        cancel,
        tell,
        'tracker.observed': changedInTracker,
        DEADLINE: failLate('verification'),
      },
    },
    recording: {
      tags: 'phase:closing',
      meta: { says: 'saves the changes on the branch of the attempt and writes the results file' },
      entry: within(waits.recording),
      invoke: {
        id: 'record',
        src: 'recordResults',
        input: read.resultsInput,
        onDone: [
          {
            guard: { type: 'mustMerge', params: read.recorded },
            target: 'merging',
            actions: 'recordBack',
          },
          { target: 'closing', actions: 'recordBack' },
        ],
        onError: [tellLater('recording'), toFailing],
      },
      on: { DEADLINE: failLate('writing the results') },
    },
    merging: {
      tags: 'phase:closing',
      meta: {
        says: "merges the work into the project's branch, or notes why it is refused",
      },
      entry: within(waits.merging),
      invoke: {
        id: 'merge',
        src: 'mergeWork',
        input: read.attemptOf,
        onDone: [
          {
            guard: { type: 'mustRework', params: read.rework },
            target: 'returning',
            actions: ['recordBack', 'recordAnswers', { type: 'recordRework', params: read.rework }],
          },
          { target: 'closing', actions: 'recordBack' },
        ],
        onError: [tellLater('merging'), toFailing],
      },
      on: { DEADLINE: failLate('merging the work') },
    },
    returning: {
      tags: 'phase:closing',
      meta: {
        says: "another attempt goes on with the work on the project's branch",
      },
      entry: within(waits.releasing),
      invoke: {
        id: 'release',
        src: 'release',
        input: read.releaseInput(null),
        onDone: { target: '#task.queued.checking', actions: ['recordBack', 'forgetLastRun'] },
        onError: [tellLater('returning'), toFailing],
      },
      on: { tell, DEADLINE: failLate('sending the work back') },
    },
    closing: {
      tags: 'phase:closing',
      meta: { says: 'closes the task in the tracker' },
      entry: within(waits.closing),
      invoke: {
        id: 'close',
        src: 'closeInTracker',
        input: read.closeInput,
        onDone: [
          {
            guard: { type: 'accepted', params: read.acceptance },
            target: '#task.complete',
            actions: ['recordEnd', 'recordAnswers'],
          },
          { target: 'failing', actions: { type: 'recordFailure', params: read.closeRefused } },
        ],
        onError: [tellLater('closing'), toFailing],
      },
      on: { DEADLINE: tellLateLater('closing') },
    },
    failing: {
      tags: 'phase:closing',
      meta: { says: 'stops the processes of the attempt and releases the task in the tracker' },
      entry: within(waits.releasing),
      invoke: {
        id: 'release',
        src: 'release',
        input: read.releaseAfterFailure,
        onDone: [
          {
            guard: 'hasAttemptsLeft',
            target: '#task.queued.backingOff',
            actions: ['recordBack', 'spendRetry', recordCut],
          },
          { target: '#task.failed', actions: [recordCut, 'recordEnd'] },
        ],
        onError: [tellLater('failing'), { target: '#task.failed', actions: 'recordEnd' }],
      },
      on: {
        tell: read.keepsForNext,
        'restores.spent': giveUp,
        DEADLINE: { guard: 'deadlinePassed', target: '#task.failed', actions: 'recordEnd' },
      },
    },
    parking: {
      tags: 'phase:closing',
      meta: {
        says: 'a limit of the provider: stops the processes of the attempt, keeps its folder and opens the task in the tracker',
      },
      entry: within(waits.releasing),
      invoke: {
        id: 'parkAttempt',
        src: 'parkAttempt',
        input: read.attemptOf,
        onDone: { target: '#task.queued.parked', actions: 'recordBack' },
        onError: [tellLater('parking'), toFailing],
      },
      on: { cancel, tell, 'limit.ended': limitEnds, DEADLINE: tellLateLater('parking') },
    },
    cancelling: {
      tags: ['answering', 'phase:cancelling'],
      meta: { says: 'keeps the slot until no process of the attempt runs' },
      entry: within(waits.releasing),
      invoke: {
        id: 'release',
        src: 'release',
        input: read.releaseInput('agent-cancelled'),
        onDone: { target: '#task.cancelled', actions: [recordCut, 'recordEnd'] },
        onError: [
          tellLater('cancelling'),
          {
            target: '#task.failed',
            actions: ['recordEnd', { type: 'recordFailure', params: read.workFailure }],
          },
        ],
      },
      on: {
        cancel: { actions: 'ignore' },
        'restores.spent': giveUp,
        DEADLINE: {
          guard: 'deadlinePassed',
          target: '#task.failed',
          actions: [
            'recordEnd',
            { type: 'recordFailure', params: read.tookTooLong('stopping the attempt') },
          ],
        },
      },
    },
    standingDown: {
      tags: 'phase:cancelling',
      meta: {
        says: 'somebody closed the task in the tracker; the attempt is stopped, its results are kept',
      },
      entry: within(waits.releasing),
      invoke: {
        id: 'standDown',
        src: 'standDown',
        input: read.stopInput,
        onDone: { target: '#task.complete', actions: [recordCut, 'recordEnd'] },
        onError: toFailing,
      },
      on: { DEADLINE: failLate('stopping the attempt') },
    },
    yielding: {
      tags: 'phase:cancelling',
      meta: {
        says: 'somebody took the task in the tracker; the attempt is stopped, its results are kept',
      },
      entry: within(waits.releasing),
      invoke: {
        id: 'standDown',
        src: 'standDown',
        input: read.stopInput,
        onDone: { target: '#task.queued.refused', actions: recordCut },
        onError: toFailing,
      },
      on: { DEADLINE: failLate('stopping the attempt') },
    },
    telling: {
      tags: 'phase:waiting_for_tracker',
      meta: { says: 'the tracker is unavailable; it is told when it is back' },
      on: { 'restores.spent': { actions: 'ignore' } },
      initial: 'claiming',
      states: {
        claiming: {
          meta: { says: 'the tracker does not know yet that the task is started' },
          entry: 'setTrackerPause',
          on: {
            tell,
            cancel: {
              target: '#task.started.cancelling',
              actions: { type: 'recordReason', params: read.eventOf },
            },
            DEADLINE: [
              { guard: 'trackerGoneTooLong', target: '#task.queued.refused' },
              { guard: 'deadlinePassed', target: '#task.started.claiming' },
            ],
          },
        },
        recording: {
          meta: { says: 'the results cannot be written now; the server tries again' },
          entry: 'setTrackerPause',
          on: { DEADLINE: again('recording') },
        },
        merging: {
          meta: { says: 'the work could not be merged; the server tries again' },
          entry: 'setTrackerPause',
          on: { DEADLINE: again('merging') },
        },
        returning: {
          meta: { says: 'the tracker does not know yet that the attempt is over' },
          entry: 'setTrackerPause',
          on: { DEADLINE: again('returning') },
        },
        closing: {
          meta: { says: 'the tracker does not know yet that the task is done' },
          entry: 'setTrackerPause',
          on: { DEADLINE: again('closing') },
        },
        failing: {
          meta: { says: 'the tracker does not know yet that the attempt failed' },
          entry: 'setTrackerPause',
          on: { tell: read.keepsForNext, DEADLINE: again('failing') },
        },
        parking: {
          meta: { says: 'the tracker does not know yet that the attempt is parked' },
          entry: 'setTrackerPause',
          on: {
            tell,
            cancel: {
              target: '#task.started.cancelling',
              actions: { type: 'recordReason', params: read.eventOf },
            },
            'limit.ended': limitEnds,
            DEADLINE: again('parking'),
          },
        },
        cancelling: {
          meta: { says: 'the tracker does not know yet that the attempt was cancelled' },
          entry: 'setTrackerPause',
          on: { cancel: { actions: 'ignore' }, DEADLINE: again('cancelling') },
        },
      },
    },
  },
});
