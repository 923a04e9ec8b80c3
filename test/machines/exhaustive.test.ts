import assert from 'node:assert/strict';
import { expect, test } from 'vitest';
import { createActor, type EventObject, type SnapshotFrom, transition } from 'xstate';
import { refusal } from '../../src/machines/errors.ts';
import { atWork } from '../../src/machines/supervisor/supervisor-context.ts';
import { supervisorMachine } from '../../src/machines/supervisor/supervisor-machine.ts';
import { requestsIn } from '../../src/machines/supervisor/waiting-queue.ts';
import { taskMachine } from '../../src/machines/task/task-machine.ts';
import { type AttemptOutcome, noUsage, type TaskId } from '../../src/machines/task.ts';
import { isLong } from '../support/long.ts';
import { broken, done, nodesOf, pathOf } from './chart.ts';

/** Every state that these events reach, each visited once, with its path. */
const explore = <Snapshot>(
  first: Snapshot,
  keyOf: (snapshot: Snapshot) => string,
  next: (snapshot: Snapshot) => readonly (readonly [event: string, snapshot: Snapshot])[],
  check: (snapshot: Snapshot, by: string, before: Snapshot | null) => void,
): number => {
  const seen = new Set([keyOf(first)]);
  const queue: Snapshot[] = [first];
  check(first, 'the beginning', null);
  for (const snapshot of queue)
    for (const [event, after] of next(snapshot)) {
      check(after, `${event} in ${keyOf(snapshot)}`, snapshot);
      if (seen.has(keyOf(after))) continue;
      seen.add(keyOf(after));
      queue.push(after);
    }
  return seen.size;
};

test.each([1, 2, 3])(
  'four tasks and %s slots: no reachable state grants a slot twice or wastes one',
  (cap) => {
    type Snapshot = SnapshotFrom<typeof supervisorMachine>;
    const ids = ['bd-a', 'bd-b', 'bd-c', 'bd-d'] as TaskId[];
    const keyOf = ({ value, context }: Snapshot): string =>
      JSON.stringify([
        value,
        requestsIn(context.waiting).map(({ taskId }) => taskId),
        context.holding.map(({ taskId, lent }) => [taskId, lent]),
        context.returning,
      ]);
    const next = (snapshot: Snapshot) => {
      const { holding } = snapshot.context;
      const events = ids.flatMap((taskId, index) => [
        ...(holding.some((holder) => holder.taskId === taskId)
          ? ['slot.lent', 'slot.wanted'].filter(() => index < 2).map((type) => ({ type, taskId }))
          : [
              {
                type: 'slot.requested',
                request: {
                  taskId,
                  role: 'engineer',
                  priority: index % 2,
                  submittedAt: index,
                  admitted: false,
                  backend: null,
                  triesNow: false,
                },
                at: 0,
              },
            ]),
        { type: 'slot.returned', taskId },
      ]);
      return [...events, { type: 'queue.opened' }, { type: 'drain' }].map(
        (event) =>
          [
            JSON.stringify(event),
            transition(supervisorMachine, snapshot, event as never)[0],
          ] as const,
      );
    };
    const first = createActor(supervisorMachine, {
      input: { cap, roleCaps: {}, queueLimit: 3 },
    }).getSnapshot();

    // Checked so often that expect would take most of the time.
    const count = explore(first, keyOf, next, ({ value, context }, by) => {
      const { holding, returning } = context;
      const waiting = requestsIn(context.waiting);
      const everyone = [...holding, ...waiting].map(({ taskId }) => taskId);
      const busy = atWork(context).length;
      assert.ok(busy <= cap, by);
      assert.equal(new Set(everyone).size, everyone.length, by);
      assert.ok(value !== 'open' || busy === cap || waiting.length === 0, by);
      assert.ok(value === 'restoring' || busy === cap || returning.length === 0, by);
      for (const taskId of returning)
        assert.ok(
          holding.some((held) => held.taskId === taskId && held.role === 'engineer' && held.lent),
          by,
        );
      const order = waiting.map(({ priority, submittedAt }) => priority * 10 + submittedAt);
      assert.deepEqual(
        order,
        order.toSorted((one, other) => one - other),
        by,
      );
    });

    expect(count).toBeGreaterThan(50);
  },
);

test('one task: no reachable state is stuck, started without an attempt, or ended without a result', {
  tags: ['slow'],
}, () => {
  type Snapshot = SnapshotFrom<typeof taskMachine>;
  const taskId = 'bd-a' as TaskId;
  const at = 1_000_000;
  const found = { exists: true, unmet: [], holder: null, missingCredential: null };
  const failure = (retryable: boolean) =>
    ({ code: 'model_failed', message: 'x', facts: {}, retryable }) as const;
  const well: AttemptOutcome = { status: 'done', summary: '', artifacts: [], usage: noUsage };
  const parking = { since: at, until: at + 10, reason: 'a limit', backend: 'builtin' };
  const away = {
    name: 'ServiceError',
    message: 'away',
    code: 'tracker_unavailable',
    facts: { detail: 'locked', remedy: 'wait' },
  };
  const no = { refusal: refusal('tracker_conflict', { task_id: taskId, holder: 'amy' }) };
  const outputs: Readonly<Record<string, readonly unknown[]>> = {
    lookUp: [found, { ...found, exists: false }, { ...found, unmet: ['bd-b'] }],
    awaitDependencies: [null, { dependency: 'bd-b', status: 'failed', why: 'x' }],
    requestSlot: [{ refusal: null }, no],
    waitForSlot: [null, parking],
    claim: [{ refusal: null }, no],
    work: [
      well,
      { status: 'parked', parking, usage: noUsage },
      ...[true, false].map((retryable) => ({
        status: 'failed',
        failure: failure(retryable),
        usage: noUsage,
      })),
    ],
    verify: [{ failure: null }, { failure: failure(false) }],
    record: [{ toMerge: false }, { toMerge: true }],
    merge: [undefined, { rework: { why: 'red', round: 1 } }],
    close: [{ refusal: null }, no],
    reopen: [{ refusal: null }, no],
    parkAttempt: [{ refusal: null }],
    release: [undefined],
    standDown: [undefined],
  };
  const nodes = new Map(nodesOf(taskMachine.root).map((node) => [node.path.join('.'), node]));
  const invoked = (path: string): readonly string[] =>
    (nodes.get(path)?.invoke ?? []).map(({ id }) => id as string);
  const options = { verify: ['true'] };
  const commands = [
    { type: 'run', role: 'engineer', options: { ...options, when: 'ready' }, maxRetries: 1 },
    { type: 'run', role: 'engineer', options, maxRetries: 1 },
    { type: 'retry', role: null, options: null, maxRetries: 1 },
    { type: 'retry', role: null, options, maxRetries: 1 },
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
    { type: 'dependency.failed', dependency: 'bd-b', status: 'failed', why: 'x' },
  ].map((event): EventObject => Object.assign({ at }, event));
  const endings = (id: string): readonly EventObject[] => [
    ...(outputs[id] ?? []).map((output) => done(id, output)),
    broken(id),
    { ...broken(id), error: away } as EventObject,
  ];
  /** On time, and after the longest tracker outage. */
  const deadlines = ({ context }: Snapshot): readonly EventObject[] =>
    [0, 10 ** 9].flatMap((late) =>
      [true, false].map(
        (agentHasTime) =>
          ({
            type: 'DEADLINE',
            agentHasTime,
            at: (context.deadlineAt ?? at) + late,
          }) as EventObject,
      ),
    );
  const attempts = (context: Snapshot['context']): number => Math.min(context.attempt, 3);
  const keyOf = (snapshot: Snapshot): string => {
    const { context } = snapshot;
    const marks = [
      attempts(context),
      Math.min(context.retriesLeft, 1),
      context.failure?.retryable ?? null,
    ];
    // The short form holds states alike that differ in these only.
    const besides = [
      context.feedback?.round ?? 0,
      context.role,
      context.refusal?.code,
      context.parked?.triesNow,
    ];
    return JSON.stringify([
      pathOf(snapshot),
      ...marks,
      context.options.when,
      context.accepted,
      context.parked?.hasBegun,
      ...(isLong ? besides : []),
    ]);
  };
  const events = (snapshot: Snapshot): readonly EventObject[] => [
    ...commands,
    ...deadlines(snapshot),
    ...invoked(pathOf(snapshot)).flatMap(endings),
  ];
  const next = (snapshot: Snapshot) =>
    events(snapshot)
      .filter((event) => snapshot.can(event as never))
      .map((event) => [event.type, transition(taskMachine, snapshot, event as never)[0]] as const);
  const first = createActor(taskMachine, { input: { taskId } }).getSnapshot();
  const visited = new Set<string>();

  const count = explore(first, keyOf, next, (snapshot, by, before) => {
    const { context } = snapshot;
    visited.add(pathOf(snapshot));
    if (snapshot.hasTag('pending')) assert.equal(typeof context.deadlineAt, 'number', by);
    if (snapshot.hasTag('live')) assert.ok(context.attempt > 0, by);
    if (pathOf(snapshot) === 'queued.refused') assert.notEqual(context.refusal, null, by);
    if (snapshot.hasTag('failed') && context.attempt > 0 && before?.hasTag('pending') === true)
      assert.deepEqual(
        [context.failure === null, context.completedAt === null],
        [false, false],
        by,
      );
    if (before !== null) {
      const began = context.attempt - before.context.attempt;
      const begins = !before.hasTag('live') && snapshot.hasTag('live');
      // A parked attempt goes on with its number.
      assert.equal(began, begins && before.context.parked?.hasBegun !== true ? 1 : 0, by);
    }
    // In every state some command or the deadline leads on.
    assert.ok(
      events(snapshot).some((event) => snapshot.can(event as never)),
      by,
    );
  });

  const leaves = [...nodes.values()].filter(({ states }) => Object.keys(states).length === 0);
  const passing = leaves.filter(({ always, path }) => (always ?? []).length > 0 && path.length > 0);
  expect(
    leaves
      .filter((leaf) => !passing.includes(leaf))
      .map(({ path }) => path.join('.'))
      .filter((path) => !visited.has(path)),
  ).toEqual([]);
  process.stdout.write(`one task: ${count} states\n`);
  expect(count).toBeGreaterThan(200);
});
