import type { EventObject } from 'xstate';
import { refusal } from '../../src/machines/errors.ts';
import type { Parked, TaskContext } from '../../src/machines/task/task-context.ts';
import { longestTrackerOutageMs } from '../../src/machines/task/task-selectors.ts';
import {
  type AttemptOutcome,
  noUsage,
  type Parking,
  type TaskId,
} from '../../src/machines/task.ts';
import { at, broken, done, type Row } from './chart.ts';

const parking: Parking = {
  since: at,
  until: at + 3_600_000,
  reason: 'provider limit: x',
  backend: 'builtin',
};
const parked: Parked = { ...parking, since: at - 5_000, hasBegun: true, triesNow: false };
const notBegun: Parked = { ...parked, hasBegun: false };
const begun: Partial<TaskContext> = {
  role: 'engineer',
  attempt: 1,
  retriesLeft: 1,
  startedAt: 5,
  deadlineAt: at,
  parked,
};
const waiting = { ...begun, attempt: 0, startedAt: null, parked: notBegun };
const stopped: AttemptOutcome = { status: 'parked', parking, usage: noUsage };
const cancel: EventObject = Object.assign({ type: 'cancel' }, { reason: 'not now', at });
const close: EventObject = Object.assign({ type: 'close' }, { reason: 'by hand', at });
const ended = (backend: string): EventObject =>
  Object.assign({ type: 'limit.ended' }, { backend, at });
const late = { type: 'DEADLINE', at };
const seen = { type: 'tracker.observed', status: 'complete', holder: null, at };
const retry = (role: string | null, options: object | null = null) => ({
  ...{ type: 'retry', role, options, maxRetries: 2, reason: null, at },
});
const away = {
  ...broken('parkAttempt'),
  error: { code: 'tracker_unavailable', facts: { detail: 'locked', remedy: 'wait' } },
};
const conflict = refusal('tracker_conflict', { task_id: 'bd-a1' as TaskId, holder: 'amy' });

/** A wait that could not be asked for goes on; the reason stays the same. */
const waitsOn = (from: string, actor: string): readonly Row[] => [
  {
    says: 'a parked task that cannot be looked at stays parked for a minute',
    from,
    event: broken(actor),
    given: begun,
    to: 'queued.parked',
    expected: { deadlineAt: at + 60_000, parked: { reason: parking.reason, hasBegun: true } },
  },
  {
    says: 'a parked task whose look takes too long stays parked',
    from,
    event: late,
    given: begun,
    to: 'queued.parked',
    expected: { deadlineAt: at + 60_000 },
  },
];

const closedMeanwhile: readonly Row[] = [
  'queued.waitingForDependencies',
  'queued.waitingForSlot',
  'queued.parked',
].map((from) => ({
  says: 'the work of a parked attempt is saved when somebody closes its task in the tracker',
  from,
  event: seen,
  given: begun,
  to: 'queued.standingDown',
}));

/** An attempt ends, also when its work cannot be saved now. */
const endsParked = (from: string, to: string): readonly Row[] =>
  [done('standDown'), broken('standDown'), late].map((event) => ({
    says: 'the parked attempt is over',
    from,
    event,
    given: { ...begun, refusal: conflict },
    to,
    expected: { parked: undefined },
  }));

const atBudget: Parked = {
  ...parked,
  budget: 'run',
  reason: 'budget.run_usd: 2 of 2 USD are spent',
};
const oldRun = { run: { id: '2026-11-27-old', maxCostUsd: 2 } };
const newRun = { run: { id: '2026-11-28-new', maxCostUsd: 5 } };
const runWith = (options: object): EventObject =>
  Object.assign({ type: 'run' }, { role: 'engineer', options, maxRetries: 2, at });

/** A further run that has more money, or the first one of a task whose run used up its budget. */
const bringsBudget: readonly Row[] = [
  {
    says: 'a run with more money lets a task go on that its budget parked, in the same attempt',
    from: 'queued.parked',
    event: runWith(newRun),
    given: { ...begun, options: { model: 'm', ...oldRun }, parked: atBudget },
    to: 'queued.checking',
    expected: { options: { model: 'm', ...newRun }, attempt: 1 },
  },
  ...(['waitingForDependencies', 'waitingForSlot', 'backingOff'] as const).map((state) => ({
    says: 'a task that waits counts for the run with its own amount from now on',
    from: `queued.${state}`,
    event: runWith(newRun),
    given: { ...begun, options: oldRun, parked: undefined },
    to: `queued.${state}`,
    expected: { options: newRun },
  })),
  {
    says: 'a raised budget lets its task go on, and the end of a limit of the provider does not',
    from: 'queued.parked',
    event: ended('budget'),
    given: { ...begun, parked: atBudget },
    to: 'queued.checking',
  },
];

export const parkedRows: readonly Row[] = [
  ...[begun, waiting].map((given) => ({
    says: 'the provider answers again: a parked task is looked at before its time',
    from: 'queued.parked',
    event: ended('builtin'),
    given,
    to: 'queued.checking',
    expected: { parked: given.parked },
  })),
  ...['started.parking', 'started.telling.parking'].map((from) => ({
    says: 'a limit that ends while the attempt is being parked parks it for a moment',
    from,
    event: ended('builtin'),
    given: begun,
    to: from,
    expected: { parked: { ...parked, until: at } },
  })),
  {
    says: 'a limit of the provider parks the attempt',
    from: 'started.working',
    event: done('work', stopped),
    given: { ...begun, parked: undefined },
    to: 'started.parking',
    expected: { parked: { ...parking, since: at, hasBegun: true }, failure: null },
  },
  {
    says: 'it waits without a slot until the limit is over',
    from: 'started.parking',
    event: done('parkAttempt', { refusal: null }),
    given: begun,
    to: 'queued.parked',
    expected: { deadlineAt: parking.until, attempt: 1, retriesLeft: 1 },
  },
  {
    says: 'the tracker is told later',
    from: 'started.parking',
    event: away,
    given: begun,
    to: 'started.telling.parking',
  },
  {
    says: 'an attempt that cannot be stopped fails',
    from: 'started.parking',
    event: broken('parkAttempt'),
    given: begun,
    to: 'started.failing',
  },
  {
    says: 'a tracker that is slow is told later',
    from: 'started.parking',
    event: late,
    given: begun,
    to: 'started.telling.parking',
  },
  ...['started.parking', 'started.telling.parking', 'queued.parked'].map((from) => ({
    says: 'it can be cancelled',
    from,
    event: cancel,
    given: begun,
    to: from === 'queued.parked' ? 'queued.cancelling' : 'started.cancelling',
  })),
  {
    says: 'the tracker is told again',
    from: 'started.telling.parking',
    event: late,
    given: { ...begun, trackerAwaySince: at - 1, trackerTries: 1 },
    to: 'started.parking',
  },
  {
    says: 'a tracker that is away for too long ends the attempt',
    from: 'started.telling.parking',
    event: late,
    given: { ...begun, trackerAwaySince: at - longestTrackerOutageMs, trackerTries: 1 },
    to: 'failed',
    expected: { parked: undefined },
  },
  {
    says: 'when the limit is over the task is looked at',
    from: 'queued.parked',
    event: late,
    given: begun,
    to: 'queued.checking',
    expected: { parked: { hasBegun: true } },
  },
  ...waitsOn('queued.checking', 'lookUp'),
  ...waitsOn('queued.asking', 'requestSlot'),
  {
    says: 'a limit of its backend parks a task before its attempt begins',
    from: 'queued.waitingForSlot',
    event: done('waitForSlot', parking),
    given: { ...waiting, parked: undefined },
    to: 'queued.parked',
    expected: { attempt: 0, parked: { ...parking, since: at, hasBegun: false } },
  },
  {
    says: 'a new limit parks a begun attempt again, and counts from the first',
    from: 'queued.waitingForSlot',
    event: done('waitForSlot', { ...parking, until: at + 7_200_000 }),
    given: { ...begun, parked: { ...parked, triesNow: true } },
    to: 'queued.parked',
    expected: {
      parked: { ...parked, until: at + 7_200_000 },
      deadlineAt: at + 7_200_000,
    },
  },
  {
    says: 'a begun attempt goes on, and is not counted again',
    from: 'queued.waitingForSlot',
    event: done('waitForSlot', null),
    given: { ...begun, parkedMs: 1_000 },
    to: 'started.claiming',
    target: 'started',
    expected: { attempt: 1, startedAt: 5, parkedMs: 6_000 },
  },
  {
    says: 'a task that was parked before its attempt begins it',
    from: 'queued.waitingForSlot',
    event: done('waitForSlot', null),
    given: waiting,
    to: 'started.claiming',
    target: 'started',
    expected: { attempt: 1, startedAt: at, parked: undefined },
  },
  {
    says: 'a parked attempt whose task is held by somebody else saves its work',
    from: 'started.claiming',
    event: done('claim', { refusal: conflict }),
    given: begun,
    to: 'queued.yielding',
    target: 'queued.refused',
  },
  {
    says: 'a close by hand saves the work of the attempt first',
    from: 'queued.parked',
    event: close,
    given: begun,
    to: 'queued.givingUp',
    expected: { reason: 'by hand' },
  },
  {
    says: 'a task without an attempt is closed at once',
    from: 'queued.parked',
    event: close,
    given: waiting,
    to: 'queued.closing',
  },
  {
    says: 'a task without an attempt that is closed in the tracker is complete',
    from: 'queued.parked',
    event: seen,
    given: waiting,
    to: 'complete',
  },
  {
    says: 'a retry tries now',
    from: 'queued.parked',
    event: retry(null),
    given: begun,
    to: 'queued.checking',
    expected: { parked: { triesNow: true }, retriesLeft: 1 },
  },
  {
    says: 'a retry of a task without an attempt may change its role',
    from: 'queued.parked',
    event: retry('tester', {}),
    given: waiting,
    to: 'queued.checking',
    expected: { role: 'tester', parked: { triesNow: true } },
  },
  ...[retry('tester'), retry(null, { model: 'other' })].map((event) => ({
    says: 'a retry with another role or options ends the parked attempt first',
    from: 'queued.parked',
    event,
    given: begun,
    to: 'queued.restarting',
    expected: { parked: undefined, retriesLeft: 2 },
  })),
  ...bringsBudget,
  ...closedMeanwhile,
  ...endsParked('queued.restarting', 'queued.checking'),
  ...endsParked('queued.givingUp', 'queued.closing'),
  ...endsParked('queued.yielding', 'queued.refused'),
  ...endsParked('queued.standingDown', 'complete'),
];
