import assert from 'node:assert/strict';
import type { EventObject, SnapshotFrom } from 'xstate';
import { refusal } from '../../src/machines/errors.ts';
import { taskMachine } from '../../src/machines/task/task-machine.ts';
import { longestTrackerOutageMs, roundsAtMost } from '../../src/machines/task/task-selectors.ts';
import {
  type AttemptOutcome,
  noUsage,
  type Parking,
  type TaskId,
} from '../../src/machines/task.ts';
import { at, broken, done, nodesOf, pathOf } from '../machines/chart.ts';
import type { Move, World } from './world.ts';

type Snapshot = SnapshotFrom<typeof taskMachine>;

const taskId = 'bd-a' as TaskId;
const found = { exists: true, unmet: [], holder: null, missingCredential: null };
const failure = (retryable: boolean) =>
  ({ code: 'model_failed', message: 'x', facts: {}, retryable }) as const;
const well: AttemptOutcome = { status: 'done', summary: 'ok', artifacts: [], usage: noUsage };
const badly = (retryable: boolean): AttemptOutcome => ({
  status: 'failed',
  failure: failure(retryable),
  usage: noUsage,
});
const parking: Parking = {
  since: at,
  until: at + 3_600_000,
  reason: 'a limit',
  backend: 'builtin',
};
const away = {
  code: 'tracker_unavailable',
  message: 'away',
  facts: { detail: 'locked', remedy: 'wait' },
};
const verdicts = [
  { refusal: null },
  { refusal: refusal('tracker_conflict', { task_id: taskId, holder: 'amy' }) },
];

/** What each work may answer; every one may also break, and find the tracker away. */
const answers: Readonly<Record<string, readonly unknown[]>> = {
  lookUp: [
    found,
    { ...found, exists: false },
    { ...found, unmet: ['bd-b'] },
    { ...found, holder: 'amy' },
    { ...found, missingCredential: 'OPENAI_API_KEY' },
    { ...found, projectProblem: { path: '/p', problem: 'x', remedy: 'y' } },
    { ...found, usedBudget: { ...parking, budget: 'run' } },
  ],
  awaitDependencies: [null, { dependency: 'bd-b', status: 'failed', why: 'x' }],
  requestSlot: [
    { refusal: null },
    { refusal: refusal('queue_full', { limit: 1, retry_after_seconds: 10 }) },
  ],
  waitForSlot: [null, parking],
  holdSlot: [undefined],
  claim: verdicts,
  work: [well, badly(true), badly(false), { status: 'parked', parking, usage: noUsage }],
  verify: [{ failure: null }, { failure: failure(false) }],
  record: [{ toMerge: false }, { toMerge: true }],
  merge: [undefined],
  close: verdicts,
  reopen: verdicts,
  parkAttempt: verdicts,
  release: [undefined],
  standDown: [undefined],
};

const commands: readonly EventObject[] = [
  { type: 'run', role: 'engineer', options: {}, maxRetries: 1 },
  { type: 'run', role: 'engineer', options: { verify: ['true'] }, maxRetries: 1 },
  { type: 'run', role: 'engineer', options: { when: 'ready' }, maxRetries: 1 },
  { type: 'run', role: 'engineer', options: { run: { id: 'r', maxCostUsd: 5 } }, maxRetries: 1 },
  { type: 'retry', role: null, options: null, maxRetries: 1 },
  { type: 'retry', role: null, options: {}, maxRetries: 1 },
  ...['comment', 'request_changes'].map((verdict) => ({
    ...{ type: 'review', verdict, attempt: null, maxRetries: 1, comments: [] },
  })),
  ...['close', 'reopen', 'cancel'].map((type) => ({ type, reason: null })),
  ...['open', 'complete', 'failed', 'cancelled', 'elsewhere'].map((status) => ({
    type: 'tracker.observed',
    status,
  })),
  { type: 'limit.ended', backend: 'builtin' },
  { type: 'restores.spent', restores: 4 },
  { type: 'tell', text: 'use tabs' },
  { type: 'dependency.failed', dependency: 'bd-b', status: 'failed', why: 'x' },
].map((event): EventObject => Object.assign({ at }, event));

const nodes = new Map(nodesOf(taskMachine.root).map((node) => [node.path.join('.'), node]));

/** Every work that goes on in a state: its own and that of the states around it. */
const workIn = (path: string): readonly string[] => {
  const own = (nodes.get(path)?.invoke ?? []).map(({ id }) => id as string);
  return path.includes('.') ? [...own, ...workIn(path.slice(0, path.lastIndexOf('.')))] : own;
};

const endingsOf = (id: string): readonly EventObject[] => [
  ...(answers[id] ?? []).map((output) => done(id, output)),
  broken(id),
  { ...broken(id), error: away } as EventObject,
];

/** Too early, on time, and after the last patience with the tracker. */
const deadlines = ({ context }: Snapshot): readonly EventObject[] => {
  const deadlineAt = context.deadlineAt ?? at;
  const patience = Math.max(deadlineAt, (context.trackerAwaySince ?? 0) + longestTrackerOutageMs);
  const times = { early: deadlineAt - 1, punctual: deadlineAt, 'much too late': patience };
  const late = Object.entries(times).map(
    ([comes, time]): EventObject => Object.assign({ type: 'DEADLINE' }, { comes, at: time }),
  );
  return [
    ...late,
    Object.assign(
      { type: 'DEADLINE', comes: 'before that of its agent' },
      { agentHasTime: true, at: deadlineAt },
    ),
  ];
};

/**
 * Everything comes at the last moment, so that a state which kept the deadline of the one before
 * would show it.
 */
const inTheEnd = ({ context }: Snapshot, event: EventObject): EventObject =>
  Object.assign({}, event, { at: Math.max(at, (context.deadlineAt ?? at) - 1) });
const shortestWaitMs = 1_000;

interface Memory {
  /** Attempts that began since somebody asked for a run. */
  readonly attempts: number;
  /** Whether the results of the attempt are on disk. */
  readonly recorded: boolean;
  /** Whether what the attempt ran was ended, or nothing of it ever began. */
  readonly ended: boolean;
  /** Whether somebody cancelled it, and it has not come to rest since. */
  readonly cancelled: boolean;
}

const maxRetries = 1;
const asks: ReadonlySet<string> = new Set(['run', 'retry', 'review']);
const leavesRest: ReadonlySet<string> = new Set([
  'run',
  'retry',
  'review',
  'close',
  'reopen',
  'cancel',
  'tracker.observed',
]);
const endings: ReadonlySet<string> = new Set([
  'xstate.done.actor.release',
  'xstate.done.actor.parkAttempt',
  'xstate.done.actor.standDown',
]);

/**
 * Whether a move ends the work of an attempt: it is stopped, it closed its task, or it never got
 * hold of it.
 */
const endsWork = ({ before, event }: Move<Snapshot>): boolean =>
  endings.has(event.type) ||
  ['started.closing', 'started.claiming', 'started.telling.claiming'].includes(pathOf(before));

const remember = (memory: Memory, move: Move<Snapshot>): Memory => {
  const { before, event, after } = move;
  const begins = !before.hasTag('live') && after.hasTag('live');
  const counts = begins && !goesOn(before);
  const isAsked = asks.has(event.type) && pathOf(before) !== pathOf(after);
  return {
    attempts: (isAsked ? 0 : memory.attempts) + (counts ? 1 : 0),
    recorded: !begins && (memory.recorded || event.type === 'xstate.done.actor.record'),
    ended: begins ? false : memory.ended || endsWork(move),
    cancelled: after.hasTag('pending') && (memory.cancelled || event.type === 'cancel'),
  };
};

/** I12: the attempt of a parked task goes on with its number. */
const goesOn = ({ context }: Snapshot): boolean => context.parked?.hasBegun === true;

/** What a pending task was given: neither a limit of its backend nor a wait changes it. */
const givenIn = ({ failure, retriesLeft, options, submittedAt }: Snapshot['context']) => [
  failure,
  retriesLeft,
  options,
  submittedAt,
];

/** What must hold when the task comes to another state. Moves are many, so expect is too slow. */
const judgeState = (memory: Memory, { before, event, after }: Move<Snapshot>): void => {
  const { context } = after;
  const [from, to] = [pathOf(before), pathOf(after)];
  if (to === 'queued.parked') {
    const [stands, stood] = [givenIn(context), givenIn(before.context)];
    assert.deepEqual(stands, stood, 'a limit costs neither a retry nor its turn');
    assert.ok(!after.hasTag('live'), 'who is parked has no slot');
  }
  if (to === 'queued.backingOff' && before.hasTag('live'))
    assert.equal(
      context.retriesLeft,
      before.context.retriesLeft - 1,
      'another attempt costs a retry',
    );
  if (after.hasTag('pending') && from !== to)
    assert.ok(
      Number(context.deadlineAt) >= ((event as { at?: number }).at ?? at) + shortestWaitMs,
      'who waits has a deadline to come',
    );
  if (!after.hasTag('pending')) assert.equal(context.deadlineAt, null, 'who rests has none');
  if (before.hasTag('settled') && from !== to)
    assert.ok(leavesRest.has(event.type), "an end is left on somebody's word only");
  if (to === 'complete' && from === 'started.closing')
    assert.ok(memory.recorded, 'it is closed after its results are on disk');
  if (to === 'queued.refused') assert.notEqual(context.refusal, null, 'a refusal says why');
  if (after.hasTag('failed') && before.hasTag('pending'))
    assert.notEqual(context.failure, null, 'a failure says why');
  if (after.hasTag('settled') && before.hasTag('pending'))
    assert.equal(typeof context.completedAt, 'number', 'an end has a time');
  if (memory.cancelled && after.hasTag('pending'))
    assert.match(to, /(cancelling|failing|yielding)$/, 'what is cancelled is not taken up again');
};

/** What must hold on every path, whatever happens in the world. */
const judge = (memory: Memory, move: Move<Snapshot>): void => {
  const { before, after } = move;
  const { context } = after;
  const began = context.attempt - before.context.attempt;
  assert.equal(
    began,
    !before.hasTag('live') && after.hasTag('live') && !goesOn(before) ? 1 : 0,
    'an attempt is counted when it begins, and never else',
  );
  if (began === 1) assert.ok(memory.ended, 'the attempt before has ended');
  assert.ok(memory.attempts + began <= 1 + maxRetries, 'retries are bounded');
  assert.ok(context.retriesLeft >= 0, 'no retry is owed');
  assert.ok((context.feedback?.round ?? 0) <= roundsAtMost, 'work is sent back so often only');
  judgeState(memory, move);
};

const beginning = { says: 'the beginning', input: { taskId } };

/** One task with one retry, in a world in which everything may happen. */
export const taskWorld: World<Snapshot, Memory> = {
  machine: taskMachine,
  starts: [beginning],
  tours: [beginning],
  events: (snapshot) => [
    ...[...commands, ...workIn(pathOf(snapshot)).flatMap(endingsOf)].map((event) =>
      inTheEnd(snapshot, event),
    ),
    ...deadlines(snapshot),
  ],
  keyOf: (snapshot) => {
    const { role, options, accepted, retriesLeft, failure, feedback, parked } = snapshot.context;
    return JSON.stringify([
      pathOf(snapshot),
      failure === null ? null : failure.retryable,
      retriesLeft,
      feedback?.round ?? 0,
      role === null,
      (options.verify ?? []).length > 0,
      options.when ?? 'now',
      options.run === undefined,
      accepted === true,
      parked?.hasBegun,
      parked?.triesNow,
    ]);
  },
  isRest: (snapshot) => !snapshot.hasTag('pending'),
  sortOf: (rest) => JSON.stringify([pathOf(rest), rest.context.role]),
  begin: { attempts: 0, recorded: false, ended: true, cancelled: false },
  follow: (memory, move) => {
    judge(memory, move);
    return remember(memory, move);
  },
};
