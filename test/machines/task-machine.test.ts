import { describe, expect, test } from 'vitest';
import { refusal } from '../../src/machines/errors.ts';
import type { ObservedStatus, TaskContext } from '../../src/machines/task/task-context.ts';
import { taskMachine } from '../../src/machines/task/task-machine.ts';
import {
  longestTrackerOutageMs,
  roundsAtMost,
  waits,
} from '../../src/machines/task/task-selectors.ts';
import type { AttemptOutcome, Failure, TaskId } from '../../src/machines/task.ts';
import { noUsage } from '../../src/machines/task.ts';
import { at, broken, done, edgeOf, edgesOf, nodesOf, pathOf, type Row, step } from './chart.ts';
import { messageRows } from './message-rows.ts';
import { parkedRows } from './parked-rows.ts';

interface Persisted {
  readonly children: Readonly<Record<string, { readonly snapshot: { readonly input: unknown } }>>;
}

const taskId = 'bd-a1' as TaskId;
const resting: TaskContext = {
  taskId,
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
};
const running: Partial<TaskContext> = {
  role: 'engineer',
  attempt: 1,
  retriesLeft: 1,
  startedAt: 5,
  deadlineAt: at,
};

const run = { type: 'run', role: 'engineer', options: { maxTurns: 3 }, maxRetries: 2, at };
const retry = (role: string | null) => ({ type: 'retry', role, options: null, maxRetries: 2, at });
const review = (verdict: string, attempt: number | null = null) => ({
  ...{ type: 'review', verdict, attempt, maxRetries: 2, at },
  comments: [{ path: 'a.js', line: 3, endLine: null, text: 'why?' }],
});
const close = { type: 'close', reason: 'by hand', at };
const cancel = { type: 'cancel', reason: 'not now', at };
const reopen = { type: 'reopen', reason: null, at };
const late = { type: 'DEADLINE', at };
const seen = (status: ObservedStatus, holder: string | null = null) => ({
  type: 'tracker.observed',
  status,
  holder,
  at,
});

const full = refusal('queue_full', { limit: 9, retry_after_seconds: 10 });
const found = { exists: true, unmet: [], holder: null, missingCredential: null };
const yes = { refusal: null };
const no = { refusal: refusal('tracker_conflict', { task_id: taskId, holder: 'somebody' }) };
const well: AttemptOutcome = { status: 'done', summary: 'ok', artifacts: [], usage: noUsage };
const failure = (retryable: boolean): Failure => ({
  code: 'model_failed',
  message: 'away',
  facts: {},
  retryable,
});
const badly: AttemptOutcome = { status: 'failed', failure: failure(false), usage: noUsage };
const away = refusal('tracker_unavailable', {
  detail: 'it broke',
  remedy: 'repair it, then try again',
});
const slow = refusal('tracker_unavailable', {
  detail: 'it did not answer in time',
  remedy: 'try again',
});
const gone = refusal('tracker_unavailable', {
  detail: 'the database is locked',
  remedy: 'try again',
});
/** The error of a slot as the chart gets it: the tracker is unavailable. */
const isAway = (id: string) => ({
  ...broken(id),
  error: { name: 'ServiceError', message: 'away', code: gone.code, facts: gone.facts },
});
const longGone = { trackerAwaySince: at - longestTrackerOutageMs, trackerTries: 20 };
/** The pause, plus up to a quarter. */
const within = (ms: number) => (deadlineAt: number) =>
  deadlineAt >= at + ms && deadlineAt <= at + ms * 1.25;
const broke = { code: 'internal', message: 'it broke', retryable: false };

const requested = {
  role: 'engineer',
  options: { maxTurns: 3 },
  retriesLeft: 2,
  submittedAt: at,
  attempt: 0,
};

const works = {
  recording: 'record',
  merging: 'merge',
  returning: 'release',
  closing: 'close',
  failing: 'release',
  cancelling: 'release',
} as const;

const restRows: readonly Row[] = ['queued.idle', 'queued.refused'].flatMap((from) => [
  { says: 'a run is checked first', from, event: run, to: 'queued.checking', expected: requested },
  {
    says: 'a close by hand goes to the tracker',
    from,
    event: close,
    to: 'queued.closing',
    expected: { reason: 'by hand' },
  },
  {
    says: 'a cancel goes to the tracker',
    from,
    event: cancel,
    to: 'queued.cancelling',
    expected: { reason: 'not now' },
  },
  { says: 'closed elsewhere is complete', from, event: seen('complete'), to: 'complete' },
  { says: 'failed elsewhere is failed', from, event: seen('failed'), to: 'failed' },
  { says: 'cancelled elsewhere is cancelled', from, event: seen('cancelled'), to: 'cancelled' },
  {
    says: 'by policy it fails with what it depends on',
    from,
    event: {
      type: 'dependency.failed',
      dependency: 'bd-b',
      status: 'failed',
      why: 'no luck',
      at,
    },
    to: 'queued.releasing',
    expected: {
      failure: expect.objectContaining({ message: 'it depends on bd-b, which failed: no luck' }),
      deadlineAt: at + waits.releasing,
    },
  },
]);

const whenReady = { options: { when: 'ready' as const } };
const unmet = { ...found, unmet: ['bd-b' as TaskId] };

/** A run that waits for its dependencies. */
const waitingRows: readonly Row[] = [
  {
    says: 'an accepted run waits again when the tracker broke',
    from: 'queued.checking',
    event: broken('lookUp'),
    given: { ...whenReady, accepted: true },
    to: 'queued.waitingForDependencies',
    expected: { refusal: null },
  },
  {
    says: 'an accepted run waits again when the tracker is late',
    from: 'queued.checking',
    event: late,
    given: { ...whenReady, accepted: true, deadlineAt: at },
    to: 'queued.waitingForDependencies',
  },
  {
    says: 'what waits for dependencies is checked again when they may be complete',
    from: 'queued.waitingForDependencies',
    event: done('awaitDependencies', null),
    to: 'queued.checking',
  },
  {
    says: 'by policy what waits fails with a dependency that failed',
    from: 'queued.waitingForDependencies',
    event: done('awaitDependencies', { dependency: 'bd-b', status: 'failed', why: 'no luck' }),
    to: 'queued.releasing',
    expected: {
      failure: expect.objectContaining({ message: 'it depends on bd-b, which failed: no luck' }),
    },
  },
  {
    says: 'by policy what waits fails with a dependency that was cancelled',
    from: 'queued.waitingForDependencies',
    event: done('awaitDependencies', { dependency: 'bd-b', status: 'cancelled', why: '' }),
    to: 'queued.releasing',
    expected: {
      failure: expect.objectContaining({ message: 'it depends on bd-b, which was cancelled' }),
    },
  },
  {
    says: 'a wait for dependencies that broke ends the run',
    from: 'queued.waitingForDependencies',
    event: broken('awaitDependencies'),
    to: 'queued.refused',
    expected: { refusal: away },
  },
  {
    says: 'what waits for dependencies is cancelled',
    from: 'queued.waitingForDependencies',
    event: cancel,
    to: 'queued.cancelling',
    expected: { reason: 'not now' },
  },
  {
    says: 'what waits for dependencies and was completed in the tracker is complete',
    from: 'queued.waitingForDependencies',
    event: seen('complete'),
    to: 'complete',
    expected: { completedAt: at },
  },
  {
    says: 'after a month the wait for dependencies ends',
    from: 'queued.waitingForDependencies',
    event: late,
    given: { finding: unmet, deadlineAt: at },
    to: 'queued.refused',
    expected: {
      refusal: refusal('dependencies_unmet', { task_id: taskId, unmet: ['bd-b'] as never }),
    },
  },
];

const queuedRows: readonly Row[] = [
  {
    says: 'between attempts a tracker that broke is waited for',
    from: 'queued.checking',
    event: broken('lookUp'),
    given: { failure: failure(true), attempt: 1 },
    to: 'queued.backingOff',
    expected: { deadlineAt: expect.toSatisfy(within(2_000)) },
  },
  {
    says: 'between attempts a tracker that is late is waited for',
    from: 'queued.checking',
    event: late,
    given: { failure: failure(true), attempt: 1, deadlineAt: at },
    to: 'queued.backingOff',
  },
  ...['queued.waitingForSlot', 'queued.backingOff'].map((from) => ({
    says: 'a task that somebody completed in the tracker is complete',
    from,
    event: seen('complete'),
    to: 'complete',
    expected: { completedAt: at },
  })),
  {
    says: 'a successful check leads to a request for a slot',
    from: 'queued.checking',
    event: done('lookUp', found),
    to: 'queued.asking',
    target: 'queued.existing',
    expected: { finding: found, attempt: 0 },
  },
  {
    says: 'a tracker that broke refuses the run',
    from: 'queued.checking',
    event: broken('lookUp'),
    to: 'queued.refused',
    expected: { refusal: away },
  },
  {
    says: 'a tracker that is late refuses the run',
    from: 'queued.checking',
    event: late,
    given: { deadlineAt: at },
    to: 'queued.refused',
    expected: { refusal: slow, deadlineAt: null },
  },
  {
    says: 'a check can be cancelled',
    from: 'queued.checking',
    event: cancel,
    to: 'queued.cancelling',
  },
  {
    says: 'an accepted request waits in the queue',
    from: 'queued.asking',
    event: done('requestSlot', { refusal: null }),
    to: 'queued.waitingForSlot',
    expected: { attempt: 0 },
  },
  {
    says: 'a full queue refuses the run',
    from: 'queued.asking',
    event: done('requestSlot', { refusal: full }),
    to: 'queued.refused',
    expected: { refusal: full, deadlineAt: null },
  },
  {
    says: 'a request for a slot that broke refuses the run',
    from: 'queued.asking',
    event: broken('requestSlot'),
    to: 'queued.refused',
    expected: { refusal: away },
  },
  {
    says: 'between attempts a request for a slot that broke is made again later',
    from: 'queued.asking',
    event: broken('requestSlot'),
    given: { failure: failure(true), attempt: 1 },
    to: 'queued.backingOff',
  },
  {
    says: 'a queue that does not answer refuses the run',
    from: 'queued.asking',
    event: late,
    given: { deadlineAt: at },
    to: 'queued.refused',
    expected: { refusal: expect.objectContaining({ code: 'internal' }), deadlineAt: null },
  },
  {
    says: 'between attempts a queue that does not answer is asked again later',
    from: 'queued.asking',
    event: late,
    given: { failure: failure(true), attempt: 1, deadlineAt: at },
    to: 'queued.backingOff',
  },
  {
    says: 'a request for a slot can be cancelled',
    from: 'queued.asking',
    event: cancel,
    to: 'queued.cancelling',
  },
  {
    says: 'a slot begins the next attempt',
    from: 'queued.waitingForSlot',
    event: done('waitForSlot', null),
    given: { attempt: 1 },
    to: 'started.claiming',
    target: 'started',
    expected: { attempt: 2, startedAt: at },
  },
  {
    says: 'a wait that broke fails the task',
    from: 'queued.waitingForSlot',
    event: broken('waitForSlot'),
    to: 'queued.releasing',
    expected: { failure: expect.objectContaining(broke) },
  },
  {
    says: 'a wait that is too long fails the task',
    from: 'queued.waitingForSlot',
    event: late,
    given: { deadlineAt: at },
    to: 'queued.releasing',
    expected: { failure: expect.objectContaining({ code: 'timed_out' }) },
  },
  {
    says: 'a wait can be cancelled, and no attempt began',
    from: 'queued.waitingForSlot',
    event: cancel,
    to: 'queued.cancelling',
    expected: { attempt: 0 },
  },
  {
    says: 'a backed-off task is checked again at its deadline',
    from: 'queued.backingOff',
    event: late,
    given: { deadlineAt: at },
    to: 'queued.checking',
  },
  {
    says: 'a backed-off task can be cancelled',
    from: 'queued.backingOff',
    event: cancel,
    to: 'queued.cancelling',
  },
  {
    says: 'a failure before the slot is final',
    from: 'queued.releasing',
    event: done('release'),
    to: 'failed',
    expected: { completedAt: at },
  },
  {
    says: 'a failure before the slot is final when the tracker refuses',
    from: 'queued.releasing',
    event: broken('release'),
    to: 'failed',
  },
  {
    says: 'a failure before the slot is final when the tracker is late',
    from: 'queued.releasing',
    event: late,
    given: { deadlineAt: at },
    to: 'failed',
  },
  {
    says: 'a cancel that was written is final',
    from: 'queued.cancelling',
    event: done('release'),
    to: 'cancelled',
    expected: { completedAt: at },
  },
  {
    says: 'a cancel that cannot be written is refused',
    from: 'queued.cancelling',
    event: broken('release'),
    to: 'queued.refused',
    expected: { refusal: away },
  },
  {
    says: 'a cancel that takes too long is refused',
    from: 'queued.cancelling',
    event: late,
    given: { deadlineAt: at },
    to: 'queued.refused',
    expected: { refusal: slow },
  },
  {
    says: 'a second cancel changes nothing',
    from: 'queued.cancelling',
    event: cancel,
    to: 'queued.cancelling',
    expected: { reason: null },
  },
  {
    says: 'a close that was written is complete',
    from: 'queued.closing',
    event: done('close', yes),
    to: 'complete',
    expected: { completedAt: at, attempt: 0 },
  },
  {
    says: 'a close that the tracker refuses is refused',
    from: 'queued.closing',
    event: done('close', no),
    to: 'queued.refused',
    expected: no,
  },
  {
    says: 'a close that broke is refused',
    from: 'queued.closing',
    event: broken('close'),
    to: 'queued.refused',
    expected: { refusal: away },
  },
  {
    says: 'a close that is late is refused',
    from: 'queued.closing',
    event: late,
    given: { deadlineAt: at },
    to: 'queued.refused',
    expected: { refusal: slow },
  },
  {
    says: 'a second close changes nothing',
    from: 'queued.closing',
    event: close,
    to: 'queued.closing',
    expected: { reason: null },
  },
  {
    says: 'a reopened task rests',
    from: 'queued.reopening',
    event: done('reopen', yes),
    to: 'queued.idle',
  },
  {
    says: 'a reopen that the tracker refuses is refused',
    from: 'queued.reopening',
    event: done('reopen', no),
    to: 'queued.refused',
    expected: no,
  },
  {
    says: 'a reopen that broke is refused',
    from: 'queued.reopening',
    event: broken('reopen'),
    to: 'queued.refused',
    expected: { refusal: away },
  },
  {
    says: 'a reopen that is late is refused',
    from: 'queued.reopening',
    event: late,
    given: { deadlineAt: at },
    to: 'queued.refused',
    expected: { refusal: slow },
  },
  {
    says: 'work that is open again is looked up for its next attempt',
    from: 'queued.sendingBack',
    event: done('reopen', yes),
    to: 'queued.checking',
  },
  {
    says: 'work that the tracker does not open is refused',
    from: 'queued.sendingBack',
    event: done('reopen', no),
    to: 'queued.refused',
    expected: no,
  },
  {
    says: 'opening that broke is refused',
    from: 'queued.sendingBack',
    event: broken('reopen'),
    to: 'queued.refused',
    expected: { refusal: away },
  },
  {
    says: 'opening that is late is refused',
    from: 'queued.sendingBack',
    event: late,
    given: { deadlineAt: at },
    to: 'queued.refused',
    expected: { refusal: slow },
  },
];

const inSlot = (row: Row): Row => ({ ...row, given: { ...running, ...row.given } });
const failing = (from: string, id: string): readonly Row[] => [
  {
    says: `${from} that breaks fails the attempt`,
    from,
    event: broken(id),
    to: 'started.failing',
    expected: { failure: expect.objectContaining(broke) },
  },
  {
    says: `${from} that takes too long fails the attempt`,
    from,
    event: late,
    to: 'started.failing',
    expected: { failure: expect.objectContaining({ code: 'timed_out' }) },
  },
];

const startedRows: readonly Row[] = [
  {
    says: 'a claim that holds begins the work',
    from: 'started.claiming',
    event: done('claim', yes),
    to: 'started.working',
    expected: { deadlineAt: at + waits.working },
  },
  {
    says: 'a claim that is refused leaves the slot',
    from: 'started.claiming',
    event: done('claim', no),
    to: 'queued.refused',
    expected: { ...no, deadlineAt: null },
  },
  {
    says: 'a claim that broke leaves the slot',
    from: 'started.claiming',
    event: broken('claim'),
    to: 'queued.refused',
    expected: { refusal: away },
  },
  {
    says: 'a claim that takes too long is made again',
    from: 'started.claiming',
    event: late,
    to: 'started.telling.claiming',
    expected: { refusal: slow, trackerAwaySince: at, trackerTries: 1, deadlineAt: at + 1_000 },
  },
  {
    says: 'a claim is made again when the tracker cannot be used',
    from: 'started.claiming',
    event: isAway('claim'),
    given: { trackerAwaySince: 7, trackerTries: 2 },
    to: 'started.telling.claiming',
    expected: { refusal: gone, trackerAwaySince: 7, trackerTries: 3, deadlineAt: at + 4_000 },
  },
  {
    says: 'the claim is repeated when the tracker is back',
    from: 'started.telling.claiming',
    event: late,
    to: 'started.claiming',
  },
  {
    says: 'a claim that waited too long for the tracker leaves the slot',
    from: 'started.telling.claiming',
    event: late,
    given: { ...longGone, refusal: gone },
    to: 'queued.refused',
    expected: { refusal: gone },
  },
  {
    says: 'a claim that waits for the tracker can be cancelled',
    from: 'started.telling.claiming',
    event: cancel,
    to: 'started.cancelling',
    expected: { reason: 'not now' },
  },
  ...(['recording', 'merging', 'returning', 'closing', 'failing', 'cancelling'] as const).flatMap(
    (what): readonly Row[] => [
      {
        says: 'what the tracker cannot be told now is told later',
        from: `started.${what}`,
        event: isAway(works[what]),
        given: { trackerAwaySince: null, trackerTries: 0 },
        to: `started.telling.${what}`,
        expected: { refusal: gone, trackerAwaySince: at, trackerTries: 1 },
      },
      {
        says: 'the tracker is told again when it is back',
        from: `started.telling.${what}`,
        event: late,
        to: `started.${what}`,
      },
      {
        says: 'after a day the attempt fails with the name of the outage',
        from: `started.telling.${what}`,
        event: late,
        given: { ...longGone, refusal: gone },
        to: 'failed',
        expected: { failure: expect.objectContaining({ facts: gone }), completedAt: at },
      },
    ],
  ),
  {
    says: 'a second cancel changes nothing',
    from: 'started.telling.cancelling',
    event: cancel,
    to: 'started.telling.cancelling',
  },
  ...['started.working', 'started.verifying'].flatMap((from): readonly Row[] => [
    {
      says: 'an attempt stops when somebody closes its task',
      from,
      event: seen('complete'),
      to: 'started.standingDown',
      expected: { reason: expect.stringContaining('closed the task') },
    },
    {
      says: 'an attempt stops when somebody takes its task',
      from,
      event: seen('elsewhere', 'amy'),
      to: 'started.yielding',
      expected: { refusal: refusal('tracker_conflict', { task_id: taskId, holder: 'amy' }) },
    },
  ]),
  {
    says: 'a task that somebody closed is complete',
    from: 'started.standingDown',
    event: done('standDown'),
    to: 'complete',
    expected: { completedAt: at },
  },
  ...failing('started.standingDown', 'standDown'),
  {
    says: 'a task that somebody took rests, with the name of the holder',
    from: 'started.yielding',
    event: done('standDown'),
    given: no,
    to: 'queued.refused',
    expected: no,
  },
  ...failing('started.yielding', 'standDown'),
  {
    says: 'a claim can be cancelled',
    from: 'started.claiming',
    event: cancel,
    to: 'started.cancelling',
  },
  {
    says: 'while its agent has time, the attempt continues',
    from: 'started.working',
    event: { ...late, agentHasTime: true },
    to: 'started.working',
    expected: { failure: null, deadlineAt: at + waits.working },
  },
  {
    says: 'good work is recorded',
    from: 'started.working',
    event: done('work', well),
    to: 'started.recording',
    expected: { outcome: well },
  },
  {
    says: 'good work is verified first when commands are set',
    from: 'started.working',
    event: done('work', well),
    given: { options: { verify: ['true'] } },
    to: 'started.verifying',
    expected: { outcome: well },
  },
  {
    says: 'failed work fails, also with commands to verify',
    from: 'started.working',
    event: done('work', badly),
    given: { options: { verify: ['true'] } },
    to: 'started.failing',
    expected: { outcome: badly, failure: failure(false) },
  },
  ...failing('started.working', 'work'),
  {
    says: 'work can be cancelled',
    from: 'started.working',
    event: cancel,
    to: 'started.cancelling',
    expected: { reason: 'not now', attempt: 1 },
  },
  {
    says: 'verified work is recorded',
    from: 'started.verifying',
    event: done('verify', { failure: null }),
    to: 'started.recording',
  },
  {
    says: 'work that fails its checks goes back to its agent',
    from: 'started.verifying',
    event: done('verify', { failure: { ...failure(false), facts: { output: 'red' } } }),
    to: 'started.working',
    expected: { feedback: { round: 1, text: 'away. Its output ends with:\n\nred' } },
  },
  {
    says: 'work that fails its checks too often fails',
    from: 'started.verifying',
    event: done('verify', { failure: failure(false) }),
    given: { feedback: { round: roundsAtMost, text: 'red' } },
    to: 'started.failing',
    expected: { failure: failure(false) },
  },
  ...failing('started.verifying', 'verify'),
  {
    says: 'verification can be cancelled',
    from: 'started.verifying',
    event: cancel,
    to: 'started.cancelling',
  },
  {
    says: 'the tracker is closed only after the results are on disk',
    from: 'started.recording',
    event: done('record', { toMerge: false }),
    given: { refusal: gone, trackerAwaySince: 7, trackerTries: 2 },
    to: 'started.closing',
    expected: { refusal: null, trackerAwaySince: null, trackerTries: 0 },
  },
  ...failing('started.recording', 'record'),
  {
    says: 'work that is to be merged is merged before the tracker is closed',
    from: 'started.recording',
    event: done('record', { toMerge: true }),
    given: { refusal: gone, trackerAwaySince: 7, trackerTries: 2 },
    to: 'started.merging',
    expected: { refusal: null, trackerAwaySince: null, trackerTries: 0 },
  },
  {
    says: 'after the merge, or its refusal, the tracker is closed',
    from: 'started.merging',
    event: done('merge'),
    given: { refusal: gone, trackerAwaySince: 7, trackerTries: 2 },
    to: 'started.closing',
    expected: { refusal: null, trackerAwaySince: null, trackerTries: 0 },
  },
  {
    says: 'refused work goes to another attempt, which goes on with it',
    from: 'started.merging',
    event: done('merge', { rework: { why: 'red', round: 1 } }),
    given: { refusal: gone, trackerAwaySince: 7, trackerTries: 2 },
    to: 'started.returning',
    expected: {
      refusal: null,
      review: expect.objectContaining({ continues: 1, rework: { why: 'red', round: 1 } }),
    },
  },
  ...failing('started.merging', 'merge'),
  {
    says: 'the next attempt begins once the last one is released',
    from: 'started.returning',
    event: done('release', yes),
    to: 'queued.checking',
    expected: { outcome: null, refusal: null },
  },
  ...failing('started.returning', 'release'),
  {
    says: 'a closed task is complete',
    from: 'started.closing',
    event: done('close', yes),
    to: 'complete',
    expected: { completedAt: at, deadlineAt: null },
  },
  {
    says: 'a close that the tracker refuses fails the attempt',
    from: 'started.closing',
    event: done('close', no),
    to: 'started.failing',
    expected: { failure: expect.objectContaining({ code: 'internal', facts: no.refusal }) },
  },
  {
    says: 'a close that breaks fails the attempt',
    from: 'started.closing',
    event: broken('close'),
    to: 'started.failing',
    expected: { failure: expect.objectContaining(broke) },
  },
  {
    says: 'a close that takes too long is made again',
    from: 'started.closing',
    event: late,
    to: 'started.telling.closing',
    expected: { refusal: slow },
  },
  {
    says: 'a lasting failure is final',
    from: 'started.failing',
    event: done('release'),
    given: { failure: failure(false), retriesLeft: 2 },
    to: 'failed',
    expected: { completedAt: at, retriesLeft: 2 },
  },
  {
    says: 'a temporary failure is followed by another attempt',
    from: 'started.failing',
    event: done('release'),
    given: { failure: failure(true), retriesLeft: 1 },
    to: 'queued.backingOff',
    expected: { retriesLeft: 0, deadlineAt: expect.toSatisfy(within(2_000)), attempt: 1 },
  },
  {
    says: 'a task that cannot be released is failed',
    from: 'started.failing',
    event: broken('release'),
    given: { failure: failure(true) },
    to: 'failed',
  },
  {
    says: 'a task that is released too late is failed',
    from: 'started.failing',
    event: late,
    given: { failure: failure(true) },
    to: 'failed',
  },
  {
    says: 'a cancel ends when nothing runs',
    from: 'started.cancelling',
    event: done('release'),
    to: 'cancelled',
    expected: { completedAt: at },
  },
  {
    says: 'a cancel that cannot be confirmed is a failure',
    from: 'started.cancelling',
    event: broken('release'),
    to: 'failed',
    expected: { failure: expect.objectContaining(broke) },
  },
  {
    says: 'a cancel that takes too long is a failure',
    from: 'started.cancelling',
    event: late,
    to: 'failed',
    expected: { failure: expect.objectContaining({ code: 'timed_out' }) },
  },
  {
    says: 'a second cancel changes nothing',
    from: 'started.cancelling',
    event: { ...cancel, reason: 'again' },
    given: { reason: 'first' },
    to: 'started.cancelling',
    expected: { reason: 'first' },
  },
  {
    says: 'a slot that ends by itself changes nothing',
    from: 'started.working',
    event: done('holdSlot'),
    to: 'started.working',
    target: 'started',
  },
  {
    says: 'a slot that breaks fails the attempt',
    from: 'started.working',
    event: broken('holdSlot'),
    to: 'started.failing',
  },
].map(inSlot);

const followed = (from: string): readonly Row[] => [
  {
    says: 'reopened elsewhere is queued',
    from,
    event: seen('open'),
    given: { ...running, failure: failure(false) },
    to: 'queued.idle',
    target: 'queued',
    expected: { failure: null, attempt: 1 },
  },
  { says: 'closed elsewhere is complete', from, event: seen('complete'), to: 'complete' },
  { says: 'failed elsewhere is failed', from, event: seen('failed'), to: 'failed' },
  { says: 'cancelled elsewhere is cancelled', from, event: seen('cancelled'), to: 'cancelled' },
];
const again = (from: string): readonly Row[] => [
  {
    says: 'a retry runs with the earlier role',
    from,
    event: retry(null),
    given: { ...running, failure: failure(false) },
    to: 'queued.checking',
    expected: { role: 'engineer', failure: null, retriesLeft: 2, attempt: 1 },
  },
  {
    says: 'a retry runs with another role',
    from,
    event: retry('tester'),
    to: 'queued.checking',
    expected: { role: 'tester' },
  },
  {
    says: 'a retry without any role only puts it back',
    from,
    event: retry(null),
    to: 'queued.reopening',
  },
  { says: 'a close by hand goes to the tracker', from, event: close, to: 'queued.closing' },
];

const commented = (from: string, sentTo: string): readonly Row[] => [
  {
    says: 'comments are kept',
    from,
    event: review('comment'),
    given: { attempt: 1 },
    to: from,
    expected: {
      review: { verdict: 'comment', continues: null, comments: [{ id: 1, isOpen: true }] },
    },
  },
  {
    says: 'work is sent back',
    from,
    event: review('request_changes', 1),
    given: { ...running, attempt: 2 },
    to: sentTo,
    expected: { retriesLeft: 2, review: { continues: 1, comments: [{ attempt: 1 }] } },
  },
];

const settledRows: readonly Row[] = [
  ...['queued.idle', 'queued.refused', 'failed', 'cancelled'].flatMap((from) =>
    commented(from, 'queued.checking'),
  ),
  ...commented('complete', 'queued.sendingBack'),
  ...['complete', 'failed', 'cancelled'].flatMap(followed),
  ...['failed', 'cancelled'].flatMap(again),
  { says: 'a reopen goes to the tracker', from: 'complete', event: reopen, to: 'queued.reopening' },
  { says: 'closed stays closed', from: 'complete', event: close, to: 'complete' },
  { says: 'cancelled stays cancelled', from: 'cancelled', event: cancel, to: 'cancelled' },
];

/** An attempt that was restored too often is not gone on with; one whose work is done is. */
const crashLoopRows = [
  ...['claiming', 'working', 'verifying', 'recording', 'merging', 'closing', 'parking'].map(
    (from) => ({ from, to: 'started.failing' }),
  ),
  ...['standingDown', 'yielding'].map((from) => ({ from, to: 'started.failing' })),
  ...['failing', 'cancelling'].map((from) => ({ from, to: 'failed' })),
  ...['telling.closing', 'telling.failing'].map((from) => ({ from, to: `started.${from}` })),
].map(({ from, to }) => ({
  from: `started.${from}`,
  says: 'its servers died again and again',
  event: { type: 'restores.spent', restores: 4, at },
  given: { ...running, retriesLeft: 2 },
  to,
  expected: from.startsWith('telling')
    ? {}
    : {
        failure: {
          ...{ code: 'crash_loop', retryable: false, facts: { restores: 4 } },
          message: expect.stringContaining(`agent retry ${taskId}`),
        },
      },
}));

const rows = [
  ...restRows,
  ...waitingRows,
  ...queuedRows,
  ...startedRows,
  ...parkedRows,
  ...messageRows,
  ...settledRows,
  ...crashLoopRows,
];

describe('edges', () => {
  test.each(rows)('$from: $says', ({ from, event, given, to, expected }) => {
    const next = step(taskMachine, from, { ...resting, ...given }, event);

    expect(pathOf(next)).toBe(to);
    expect(next.context).toMatchObject(expected ?? {});
  });

  test('every edge of the chart has a case', () => {
    const exercised = new Set(rows.map((row) => edgeOf(taskMachine, row)));

    expect(edgesOf(taskMachine).filter((edge) => !exercised.has(edge))).toEqual([]);
  });
});

test.each([
  [
    'a task that does not exist',
    { ...found, exists: false },
    refusal('task_not_found', { task_id: taskId }),
  ],
  [
    'an unmet dependency',
    { ...found, unmet: ['bd-b' as TaskId] },
    refusal('dependencies_unmet', { task_id: taskId, unmet: ['bd-b' as TaskId] }),
  ],
  [
    'a missing credential',
    { ...found, missingCredential: 'OPENAI_API_KEY' },
    refusal('credential_missing', { variable: 'OPENAI_API_KEY' }),
  ],
  [
    'another holder',
    { ...found, holder: 'amy' },
    refusal('tracker_conflict', { task_id: taskId, holder: 'amy' }),
  ],
])('%s refuses the run, which stays queued', (_, finding, expectedRefusal) => {
  const next = step(taskMachine, 'queued.checking', resting, done('lookUp', finding));

  expect(pathOf(next)).toBe('queued.refused');
  expect(next.hasTag('queued')).toBe(true);
  expect(next.context.refusal).toEqual(expectedRefusal);
});

test('a run that may wait is accepted while a dependency is open', () => {
  const next = step(
    taskMachine,
    'queued.checking',
    { ...resting, ...whenReady },
    done('lookUp', unmet),
  );

  expect(pathOf(next)).toBe('queued.waitingForDependencies');
  expect(next.context).toMatchObject({
    accepted: true,
    refusal: null,
    deadlineAt: at + waits.depending,
  });
});

test('the checks are existence, dependencies, holder and credential, in this order', () => {
  const worst = { exists: false, unmet: ['bd-b'], holder: 'amy', missingCredential: 'KEY' };
  const ready = { ...worst, exists: true, unmet: [] };
  const codes = [worst, { ...worst, exists: true }, ready, { ...ready, holder: null }].map(
    (finding) =>
      step(taskMachine, 'queued.checking', resting, done('lookUp', finding)).context.refusal.code,
  );

  expect(codes).toEqual([
    'task_not_found',
    'dependencies_unmet',
    'tracker_conflict',
    'credential_missing',
  ]);
});

const pending = nodesOf(taskMachine.root).filter(({ tags, states, path }) => {
  const inStarted = path[0] === 'started';
  return Object.keys(states).length === 0 && (inStarted || tags.includes('pending' as never));
});

test.each(pending.map(({ path }) => path.join('.')))(
  '%s ends at its deadline, and not a millisecond before',
  (from) => {
    const context = { ...resting, ...running, deadlineAt: at };

    const early = step(taskMachine, from, context, { type: 'DEADLINE', at: at - 1 } as never);
    const onTime = step(taskMachine, from, context, late);

    expect(pathOf(early)).toBe(from);
    expect(pathOf(onTime)).not.toBe(from);
  },
);

test.each(
  rows.filter(({ from, to }) => from !== to && pending.some(({ path }) => path.join('.') === to)),
)('$from: $says, with a deadline', ({ from, event, given }) => {
  const next = step(taskMachine, from, { ...resting, ...given }, event);

  expect(next.context.deadlineAt).toEqual(expect.any(Number));
});

test.each([
  ['may pass and has a retry left', failure(true), 1, null],
  ['may pass and has none left', failure(true), 0, 'agent-failed'],
  ['cannot pass', failure(false), 2, 'agent-failed'],
])('a failure that %s reaches the tracker with the label %s', (_, given, retriesLeft, label) => {
  const context = { ...resting, ...running, retriesLeft };
  const next = step(
    taskMachine,
    'started.working',
    context,
    done('work', { ...badly, failure: given }),
  );

  expect(
    (taskMachine.getPersistedSnapshot(next as never) as unknown as Persisted).children['release']
      ?.snapshot.input,
  ).toEqual({
    taskId,
    attempt: 1,
    label,
  });
});

test('the end of the limit of another backend leaves a parked task as it is', () => {
  const parked = { ...{ since: 1, until: at + 9, reason: 'x' }, hasBegun: true, triesNow: false };
  const context = { ...resting, ...running, parked: { ...parked, backend: 'codex' } };
  const limitEnded = Object.assign({ type: 'limit.ended' }, { backend: 'builtin', at });

  expect(step(taskMachine, 'queued.parked', context, limitEnded).value).toEqual({
    queued: 'parked',
  });
});

test('the pause between attempts doubles and has a ceiling', () => {
  const pause = (attempt: number) =>
    step(
      taskMachine,
      'started.failing',
      { ...resting, ...running, attempt, failure: failure(true) },
      done('release'),
    ).context.deadlineAt - at;

  const pauses = [1, 2, 3, 20].map(pause);
  for (const [index, least] of [2_000, 4_000, 8_000, 300_000].entries())
    expect(within(least)(at + (pauses[index] ?? 0))).toBe(true);
  expect(pauses).toEqual([1, 2, 3, 20].map(pause));
});

test.each([
  [1_000, 2_000],
  [3_600_000, 3_600_000],
  [10 ** 12, 86_400_000],
])('a provider that asks for a pause of %d ms gets at least %d ms', (wanted, least) => {
  const context = {
    ...resting,
    ...running,
    failure: { ...failure(true), facts: { retry_after_ms: wanted } },
  };

  const { deadlineAt } = step(taskMachine, 'started.failing', context, done('release')).context;

  expect(within(least)(deadlineAt)).toBe(true);
});
