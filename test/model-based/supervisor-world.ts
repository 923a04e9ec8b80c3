import assert from 'node:assert/strict';
import type { EventObject, SnapshotFrom } from 'xstate';
import { atWork, streakAtMost } from '../../src/machines/supervisor/supervisor-context.ts';
import { supervisorMachine } from '../../src/machines/supervisor/supervisor-machine.ts';
import {
  isWaiting,
  requestsIn,
  type SlotRequest,
} from '../../src/machines/supervisor/waiting-queue.ts';
import {
  type AttemptOutcome,
  noUsage,
  type Parking,
  type TaskId,
} from '../../src/machines/task.ts';
import { at, broken, done } from '../machines/chart.ts';
import type { Move, World } from './world.ts';

type Snapshot = SnapshotFrom<typeof supervisorMachine>;

const tasks = [
  {
    taskId: 'bd-a' as TaskId,
    role: 'engineer',
    priority: 2,
    submittedAt: 1,
    admitted: false,
    backend: 'builtin',
    triesNow: false,
  },
  {
    taskId: 'bd-b' as TaskId,
    role: 'tester',
    priority: 1,
    submittedAt: 2,
    admitted: true,
    backend: 'builtin',
    triesNow: true,
  },
] as const;
const input = { cap: 1, roleCaps: {}, queueLimit: 1 };
const key = 'bd-a#1';
const well: AttemptOutcome = { status: 'done', summary: '', artifacts: [], usage: noUsage };
const down: AttemptOutcome = {
  status: 'failed',
  failure: { code: 'model_failed', message: 'down', facts: { kind: 'server' }, retryable: true },
  usage: noUsage,
};
const parking: Parking = { since: at, until: at + 1, reason: 'a limit', backend: 'builtin' };
const limited = done(key, { status: 'parked', parking, usage: noUsage });
const providerFails = done(key, down);

const holds = ({ context }: Snapshot, taskId: TaskId): boolean =>
  context.holding.some((holder) => holder.taskId === taskId);
const waits = ({ context }: Snapshot, taskId: TaskId): boolean =>
  isWaiting(context.waiting, taskId);

/** Who waits for a slot has none to take again. */
const ofTasks = (snapshot: Snapshot): readonly EventObject[] =>
  tasks.flatMap((request): readonly EventObject[] => {
    const { taskId, role } = request;
    const ask = { type: 'slot.requested', request, at } as EventObject;
    const retake = { type: 'slot.retaken', taskId, role } as EventObject;
    const giveBack = { type: 'slot.returned', taskId } as EventObject;
    const lend = { type: 'slot.lent', taskId } as EventObject;
    const want = { type: 'slot.wanted', taskId } as EventObject;
    if (holds(snapshot, taskId)) return [ask, retake, giveBack, lend, want];
    return waits(snapshot, taskId) ? [ask, giveBack] : [ask, retake];
  });

const ofAgents: readonly EventObject[] = [
  { type: 'agent.requested', key, input: {} } as EventObject,
  { type: 'agent.dismissed', key } as EventObject,
  providerFails,
  done(key, well),
  limited,
  broken(key),
];

/** The move gave somebody a slot, who had waited for it. */
const grants = ({ before, after }: Move<Snapshot>): readonly TaskId[] =>
  tasks
    .map(({ taskId }) => taskId)
    .filter((taskId) => !holds(before, taskId) && holds(after, taskId));

/** Moves are many, so expect is too slow. */
const judgeQueue = ({ before, after }: Move<Snapshot>): void => {
  const { streak, pauses } = after.context;
  assert.notEqual(before.value, 'draining', 'a server that drains goes on to do so');
  if (after.value === 'paused') {
    assert.ok(Number(streak?.count) >= streakAtMost, 'it pauses after so many failures alike');
    assert.equal(pauses, before.context.pauses + 1);
  }
  if (after.value === 'open' && before.value !== 'restoring')
    assert.deepEqual([streak, pauses], [null, 0], 'an answer ends the trouble');
};

const judge = (move: Move<Snapshot>): void => {
  const { before, event, after } = move;
  const { holding, returning, cap, parkings } = after.context;
  const waiting = requestsIn(after.context.waiting);
  const everyone = [...holding, ...waiting].map(({ taskId }) => taskId);
  assert.equal(new Set(everyone).size, everyone.length, 'nobody waits or holds twice');
  const granted = event.type === 'slot.retaken' ? [] : grants(move);
  if (granted.length > 0) {
    const busy = atWork(after.context).length;
    assert.ok(busy <= cap, 'a slot is given below the cap only');
    assert.match(
      String(after.value),
      /^(open|probing)$/,
      'slots are given while it is open or probes',
    );
    if (after.value === 'probing') assert.equal(busy, 1, 'one probes');
  }
  const isHeldUp = ({ backend, triesNow }: SlotRequest): boolean =>
    backend !== null && !triesNow && parkings[backend] !== undefined;
  assert.ok(!waiting.some(isHeldUp), 'nobody queues for a backend at its limit');
  for (const taskId of returning)
    assert.ok(
      holding.find((holder) => holder.taskId === taskId)?.lent,
      'who wants its slot again has lent it',
    );
  if (before.value !== after.value) judgeQueue(move);
};

const opened: EventObject = { type: 'queue.opened' };
const failures = Array.from({ length: streakAtMost - 1 }, () => providerFails);
const isTrouble: ReadonlySet<string> = new Set([
  providerFails.type,
  broken(key).type,
  'pause.over',
  'backend.parked',
]);

/**
 * Two tasks that want one slot, an agent that ends in every way, and a provider that may go down.
 */
export const supervisorWorld: World<Snapshot, null> = {
  machine: supervisorMachine,
  starts: [
    { says: 'the beginning', input },
    {
      says: 'all but the last failure that pauses the queue',
      input,
      prelude: [opened, ...failures],
    },
  ],
  tours: [
    { says: 'a time without trouble', input, without: ({ type }) => isTrouble.has(type) },
    {
      says: 'a time of trouble with one task',
      input,
      prelude: [opened, ...failures],
      without: (event) => event.type === 'caps.changed' || JSON.stringify(event).includes('bd-b'),
    },
  ],
  events: (snapshot) => [
    ...ofTasks(snapshot),
    ...ofAgents,
    { type: 'caps.changed', cap: 2, roleCaps: {}, queueLimit: 1 } as EventObject,
    opened,
    { type: 'pause.over' },
    { type: 'backend.parked', parking } as EventObject,
    {
      type: 'backend.answered',
      backend: 'builtin',
      taskId: 'bd-a',
      startedAt: at + 1,
    } as EventObject,
    { type: 'drain' },
  ],
  keyOf: ({ value, context }) => {
    const { waiting, holding, returning, streak, cap } = context;
    return JSON.stringify([
      value,
      requestsIn(waiting).map(({ taskId }) => taskId),
      holding.map(({ taskId, lent }) => `${taskId} ${lent}`).toSorted(),
      returning,
      Object.keys(context.parkings),
      holding.map(({ tries }) => tries),
      Math.min(streak?.count ?? 0, streakAtMost),
      cap,
    ]);
  },
  isRest: ({ value }) => value === 'draining' || value === 'paused',
  sortOf: ({ value }) => String(value),
  begin: null,
  follow: (memory, move) => {
    judge(move);
    return memory;
  },
};
