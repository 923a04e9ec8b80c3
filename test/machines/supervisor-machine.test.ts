import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createActor, fromPromise, transition } from 'xstate';
import type { AgentInput } from '../../src/machines/agent/agent-context.ts';
import { agentMachine } from '../../src/machines/agent/agent-machine.ts';
import {
  type SupervisorEvent,
  type SupervisorFact,
  streakAtMost,
} from '../../src/machines/supervisor/supervisor-context.ts';
import { supervisorMachine } from '../../src/machines/supervisor/supervisor-machine.ts';
import { requestsIn } from '../../src/machines/supervisor/waiting-queue.ts';
import {
  type AttemptOutcome,
  attemptKey,
  noUsage,
  type Role,
  type TaskId,
} from '../../src/machines/task.ts';

const place = (id: string, priority = 2, submittedAt = 0, role: Role = 'engineer') => ({
  taskId: id as TaskId,
  role,
  priority,
  submittedAt,
  admitted: false,
  backend: 'builtin' as string | null,
  triesNow: false,
});

const start = (
  cap: number,
  roleCaps: Partial<Record<Role, number>> = {},
  machine = supervisorMachine,
) => {
  const actor = createActor(machine, { input: { cap, roleCaps, queueLimit: 1_000 } });
  const facts: SupervisorFact[] = [];
  actor.on('*', (fact) => void facts.push(fact));
  actor.start();
  actor.send({ type: 'queue.opened' });
  const granted = () =>
    facts.flatMap((fact) => (fact.type === 'slot.granted' ? [fact.taskId] : []));
  return { actor, facts, granted, send: (event: SupervisorEvent) => actor.send(event) };
};
const request = (...args: Parameters<typeof place>): SupervisorEvent => ({
  type: 'slot.requested',
  request: place(...args),
  at: 0,
});
const giveBack = (id: string): SupervisorEvent => ({ type: 'slot.returned', taskId: id as TaskId });

test('a free slot goes to the highest priority, then to the oldest request', () => {
  const { send, granted } = start(1);
  for (const event of [
    request('bd-busy'),
    request('bd-late', 2, 9),
    request('bd-early', 2, 1),
    request('bd-urgent', 0, 99),
  ])
    send(event);

  for (const id of ['bd-busy', 'bd-urgent', 'bd-early', 'bd-late']) send(giveBack(id));

  expect(granted()).toEqual(['bd-busy', 'bd-urgent', 'bd-early', 'bd-late']);
});

test('a repeated request keeps its position and is granted once', () => {
  const { send, granted, actor } = start(1);
  for (const id of ['bd-a', 'bd-b', 'bd-b', 'bd-c', 'bd-b']) send(request(id));

  expect(requestsIn(actor.getSnapshot().context.waiting).map(({ taskId }) => taskId)).toEqual([
    'bd-b',
    'bd-c',
  ]);
  expect(granted()).toEqual(['bd-a']);
});

test('a full queue refuses the next request, but none that was queued before', () => {
  const { send, facts, granted, actor } = start(1);
  send({ type: 'caps.changed', cap: 1, roleCaps: {}, queueLimit: 1 });
  for (const id of ['bd-a', 'bd-b', 'bd-c', 'bd-b', 'bd-a']) send(request(id));
  send({ type: 'slot.requested', request: { ...place('bd-d'), admitted: true }, at: 0 });

  const refused = facts.filter(({ type }) => type === 'slot.refused');
  expect(refused).toEqual([{ type: 'slot.refused', taskId: 'bd-c', limit: 1 }]);
  expect(requestsIn(actor.getSnapshot().context.waiting).map(({ taskId }) => taskId)).toEqual([
    'bd-b',
    'bd-d',
  ]);
  expect(granted(), 'who asks again is told again').toEqual(['bd-a', 'bd-a']);
});

test('no task gets a slot during the restore, then the first in order does', () => {
  const actor = createActor(supervisorMachine, { input: { cap: 1, roleCaps: {}, queueLimit: 1 } });
  const granted: string[] = [];
  actor.on('slot.granted', ({ taskId }) => void granted.push(taskId));
  actor.start();

  for (const [id, priority] of [
    ['bd-a', 2],
    ['bd-b', 0],
  ] as const)
    actor.send({
      type: 'slot.requested',
      request: { ...place(id, priority), admitted: true },
      at: 0,
    });
  expect(granted).toEqual([]);
  actor.send({ type: 'queue.opened' });

  expect(granted).toEqual(['bd-b']);
});

test('a task that leaves the queue gets no slot', () => {
  const { send, granted } = start(1);
  for (const event of [
    request('bd-a'),
    request('bd-b'),
    request('bd-c'),
    giveBack('bd-b'),
    giveBack('bd-a'),
  ])
    send(event);

  expect(granted()).toEqual(['bd-a', 'bd-c']);
});

test('a role at its own cap does not delay other roles', () => {
  const { send, granted } = start(3, { tester: 1 });
  for (const [id, role] of [
    ['bd-a', 'tester'],
    ['bd-b', 'tester'],
    ['bd-c', 'engineer'],
  ] as const)
    send(request(id, 2, 0, role));
  const before = granted();

  send(giveBack('bd-a'));

  expect(before).toEqual(['bd-a', 'bd-c']);
  expect(granted()).toEqual(['bd-a', 'bd-c', 'bd-b']);
});

test('a raised cap applies at once, a lowered one revokes no slot', () => {
  const { send, granted, actor } = start(1);
  for (const id of ['bd-a', 'bd-b', 'bd-c', 'bd-d']) send(request(id));

  send({ type: 'caps.changed', cap: 3, roleCaps: {}, queueLimit: 1_000 });
  send({ type: 'caps.changed', cap: 1, roleCaps: {}, queueLimit: 1_000 });
  send(giveBack('bd-a'));

  expect(granted()).toEqual(['bd-a', 'bd-b', 'bd-c']);
  expect(actor.getSnapshot().context.holding).toHaveLength(2);
});

test('a slot that is retaken after a restart counts, also above the cap', () => {
  const { send, granted, actor } = start(1);
  for (const id of ['bd-a', 'bd-b', 'bd-a'])
    send({ type: 'slot.retaken', taskId: id as TaskId, role: 'engineer' });
  send(request('bd-c'));
  send(giveBack('bd-a'));

  expect(granted()).toEqual([]);
  expect(actor.getSnapshot().context.holding).toHaveLength(1);
});

test('a draining server grants no slot', () => {
  const { send, granted, actor } = start(1);
  for (const event of [
    request('bd-a'),
    request('bd-b'),
    { type: 'drain' } as const,
    request('bd-c'),
    giveBack('bd-a'),
  ])
    send(event);

  expect(granted()).toEqual(['bd-a']);
  expect(actor.getSnapshot().context.waiting).toHaveLength(2);
});

const input = (id: string): AgentInput => ({
  taskId: id as TaskId,
  attempt: 1,
  role: 'engineer',
  options: {},
  limits: {
    maxTurns: 1,
    maxTokensTotal: null,
    maxCostUsd: null,
    deadlineAt: 9e15,
    answerMs: 0,
    defaultAnswer: null,
    defaultDecision: null,
    maxRepeats: 9,
    maxModelRetries: 0,
    maxStrikes: 3,
    contextWindow: null,
    maxNudges: 0,
    approvals: [],
  },
});
const key = (id: string) => attemptKey(id as TaskId, 1);
const agentOf = (prepare: () => Promise<void>) =>
  supervisorMachine.provide({
    actors: {
      agent: agentMachine.provide({
        actors: { prepare: fromPromise<void, never>(prepare) as never },
      }),
    },
  });
const ended = ({ actor }: ReturnType<typeof start>, id: string) =>
  new Promise<SupervisorFact>((resolve) => {
    actor.on('agent.ended', (fact) => fact.key === key(id) && resolve(fact));
  });

test('an agent is spawned for a task with a slot, removed at its end, and its outcome sent', async () => {
  const supervisor = start(
    2,
    {},
    agentOf(() => Promise.reject(new Error('no workspace'))),
  );
  const fact = ended(supervisor, 'bd-a');
  supervisor.send(request('bd-a'));
  supervisor.send({ type: 'agent.requested', key: key('bd-a'), input: input('bd-a') });
  expect(Object.keys(supervisor.actor.getSnapshot().children)).toEqual(['bd-a#1']);

  expect(await fact).toMatchObject({
    outcome: { status: 'failed', failure: { message: 'no workspace' } },
  });
  expect(supervisor.actor.getSnapshot().children).toEqual({});
  expect(supervisor.actor.getSnapshot().context.holding).toHaveLength(1);
});

test('an agent for a task without a slot is refused', async () => {
  const supervisor = start(
    1,
    {},
    agentOf(() => new Promise(() => {})),
  );
  const fact = ended(supervisor, 'bd-a');

  supervisor.send({ type: 'agent.requested', key: key('bd-a'), input: input('bd-a') });

  expect(await fact).toMatchObject({
    outcome: { status: 'failed', failure: { message: expect.stringContaining('without a slot') } },
  });
});

test('a dismissed agent stops without an event, and its siblings live', () => {
  const supervisor = start(
    2,
    {},
    agentOf(() => new Promise(() => {})),
  );
  for (const id of ['bd-a', 'bd-b']) {
    supervisor.send(request(id));
    supervisor.send({ type: 'agent.requested', key: key(id), input: input(id) });
  }

  supervisor.send({ type: 'agent.dismissed', key: key('bd-a') });
  supervisor.send({ type: 'agent.dismissed', key: key('bd-a') });

  expect(Object.keys(supervisor.actor.getSnapshot().children)).toEqual(['bd-b#1']);
  expect(supervisor.facts.filter(({ type }) => type === 'agent.ended')).toEqual([]);
  expect(supervisor.facts).toContainEqual({ type: 'agent.gone', key: key('bd-a') });
});

test('the supervisor outlives an agent that throws', async () => {
  const throwing = agentMachine.provide({
    guards: {
      outOfTurns: () => {
        throw new Error('a guard threw');
      },
    },
    actors: { prepare: fromPromise<void, never>(async () => {}) as never },
  });
  const supervisor = start(2, {}, supervisorMachine.provide({ actors: { agent: throwing } }));
  const fact = ended(supervisor, 'bd-a');
  supervisor.send(request('bd-a'));
  supervisor.send({ type: 'agent.requested', key: key('bd-a'), input: input('bd-a') });

  expect(await fact).toMatchObject({
    outcome: { status: 'failed', failure: { code: 'internal' } },
  });
  supervisor.send(request('bd-b'));
  expect(supervisor.actor.getSnapshot().status).toBe('active');
  expect(supervisor.granted()).toEqual(['bd-a', 'bd-b']);
});

test('in any order of events the cap holds, and no slot stays free while a task waits', () => {
  const ids = ['bd-a', 'bd-b', 'bd-c', 'bd-d', 'bd-e'];
  const event: fc.Arbitrary<SupervisorEvent> = fc.oneof(
    fc
      .tuple(fc.constantFrom(...ids), fc.integer({ min: 0, max: 4 }), fc.nat(50))
      .map((args) => request(...args)),
    fc.constantFrom(...ids).map(giveBack),
    fc
      .integer({ min: 0, max: 4 })
      .map(
        (cap): SupervisorEvent => ({ type: 'caps.changed', cap, roleCaps: {}, queueLimit: 1_000 }),
      ),
  );
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 60 }),
      fc.integer({ min: 0, max: 3 }),
      (events, cap) => {
        const first = createActor(supervisorMachine, {
          input: { cap, roleCaps: {}, queueLimit: 1_000 },
        }).getSnapshot();
        let [snapshot] = transition(supervisorMachine, first, { type: 'queue.opened' });
        for (const each of events) {
          const before = snapshot.context;
          const waits =
            each.type === 'slot.requested' &&
            before.holding.some(({ taskId }) => taskId === each.request.taskId);
          if (waits) continue;
          snapshot = transition(supervisorMachine, snapshot, each)[0];
          const { holding, cap: now } = snapshot.context;
          const waiting = requestsIn(snapshot.context.waiting);
          const grew = holding.length > before.holding.length;
          expect(!grew || holding.length <= now).toBe(true);
          expect(holding.length >= now || waiting.length === 0).toBe(true);
          expect(new Set([...holding, ...waiting].map(({ taskId }) => taskId)).size).toBe(
            holding.length + waiting.length,
          );
        }
      },
    ),
    { numRuns: 300 },
  );
});

/** A supervisor whose agents end at once, each with the next of these outcomes. */
const startWith = (outcomes: AttemptOutcome[]) => {
  const agent = fromPromise(async () => outcomes.shift()) as never;
  const actor = createActor(supervisorMachine.provide({ actors: { agent } }), {
    input: { cap: 3, roleCaps: {}, queueLimit: 1_000 },
  });
  const pauses: number[] = [];
  actor.on('queue.paused', ({ ms }) => void pauses.push(ms));
  const granted: TaskId[] = [];
  actor.on('slot.granted', ({ taskId }) => {
    granted.push(taskId);
    queueMicrotask(() =>
      actor.send({ type: 'agent.requested', key: key(taskId), input: input(taskId) }),
    );
  });
  actor.on('agent.ended', ({ key: ended }) => {
    queueMicrotask(() =>
      actor.send({ type: 'slot.returned', taskId: ended.split('#')[0] as TaskId }),
    );
  });
  actor.start();
  actor.send({ type: 'queue.opened' });
  const ask = (count: number): void => {
    for (let n = 0; n < count; n += 1) actor.send(request(`bd-t${granted.length}x${n}`));
  };
  const settle = () => new Promise((resolve) => setTimeout(resolve, 10));
  return { actor, pauses, granted, ask, settle };
};
const down: AttemptOutcome = {
  status: 'failed',
  failure: {
    code: 'model_failed',
    message: 'answered 503',
    facts: { kind: 'http' },
    retryable: true,
  },
  usage: noUsage,
};
const failed = (over: object): AttemptOutcome => ({
  status: 'failed',
  failure: { ...(down as { failure: object }).failure, ...over } as never,
  usage: noUsage,
});
const fine: AttemptOutcome = { status: 'done', summary: '', artifacts: [], usage: noUsage };
const times = (count: number, outcome: AttemptOutcome) =>
  Array.from({ length: count }, () => outcome);

test('after several equal failures the queue pauses, tests with one task, and opens after a success', async () => {
  const { actor, pauses, granted, ask, settle } = startWith([
    ...times(streakAtMost + 3, down),
    ...times(99, fine),
  ]);
  ask(30);
  await settle();
  const before = granted.length;

  expect(actor.getSnapshot().value).toBe('paused');
  expect(before).toBeLessThanOrEqual(streakAtMost + 3);
  expect(actor.getSnapshot().context.streak).toMatchObject({ message: 'answered 503' });
  expect(pauses).toEqual([30_000]);
  actor.send(request('bd-while-paused', 4, 99));
  while (actor.getSnapshot().value !== 'open') {
    const last = granted.length;
    actor.send({ type: 'pause.over' });
    actor.send(request('bd-while-probing', 4, 99));
    await settle();
    expect(actor.getSnapshot().value === 'open' || granted.length === last + 1).toBe(true);
  }
  // Each failed probe doubles the pause.
  expect(pauses).toEqual(pauses.map((_, index) => 30_000 * 2 ** index));
  expect(pauses.length).toBeGreaterThan(1);
  await settle();
  expect(granted).toHaveLength(32);
  expect(actor.getSnapshot().context).toMatchObject({ pauses: 0, streak: null });
});

test.each<[string, AttemptOutcome]>([
  ['a success', fine],
  ['a failure of the task itself', failed({ code: 'verify_failed', retryable: false })],
  ['a failure of the provider that cannot pass', failed({ retryable: false })],
])('%s in between keeps the queue open', async (_, other) => {
  const { actor, granted, ask, settle } = startWith([
    ...times(streakAtMost - 1, down),
    other,
    ...times(streakAtMost - 1, down),
    ...times(99, fine),
  ]);

  ask(20);
  await settle();

  expect(actor.getSnapshot().value).toBe('open');
  expect(granted).toHaveLength(20);
});

test('failures of different kinds do not pause the queue, and a paused queue can be drained', async () => {
  const mixed = Array.from({ length: 20 }, (_, n) => failed({ facts: { kind: `kind-${n}` } }));
  const open = startWith([...mixed, ...times(9, fine)]);
  open.ask(20);
  await open.settle();
  const paused = startWith(times(99, down));
  paused.ask(20);
  await paused.settle();

  paused.actor.send({ type: 'drain' });
  paused.actor.send({ type: 'pause.over' });
  await paused.settle();

  expect(open.actor.getSnapshot().value).toBe('open');
  expect(paused.actor.getSnapshot().value).toBe('draining');
  expect(paused.granted.length).toBeLessThan(20);
});

const parking = { since: 0, until: 1_000, reason: 'a limit', backend: 'builtin' };
const toldOf = (facts: readonly SupervisorFact[]) =>
  facts.flatMap((fact) => (fact.type === 'slot.parked' ? [fact.taskId] : []));

test('at a limit of a backend its tasks leave the queue, and others go on', () => {
  const { send, facts, granted, actor } = start(1);
  send(request('bd-busy'));
  send(request('bd-waits'));
  send({
    ...{ type: 'slot.requested', at: 0 },
    request: { ...place('bd-other'), backend: 'codex' },
  } as SupervisorEvent);

  send({ type: 'backend.parked', parking });
  send(request('bd-late'));
  send(giveBack('bd-busy'));

  expect(toldOf(facts)).toEqual(['bd-waits', 'bd-late']);
  expect(granted()).toEqual(['bd-busy', 'bd-other']);
  expect(requestsIn(actor.getSnapshot().context.waiting)).toEqual([]);
});

const freedIn = (facts: readonly SupervisorFact[]) =>
  facts.flatMap((fact) => (fact.type === 'backend.freed' ? [fact.backend] : []));
const answered = (taskId: string, startedAt: number, backend = 'builtin') =>
  ({ type: 'backend.answered', backend, taskId, startedAt }) as SupervisorEvent;

test('an answer to a call that began after the limit ends it for all, an earlier one does not', () => {
  const { send, facts, granted } = start(3);
  send({ type: 'backend.parked', parking: { ...parking, since: 100 } });

  send(answered('bd-busy', 100));
  send(answered('bd-busy', 101, 'codex'));
  expect(freedIn(facts)).toEqual([]);
  send(answered('bd-busy', 101));
  send(request('bd-next'));

  expect(freedIn(facts)).toEqual(['builtin']);
  expect(granted()).toEqual(['bd-next']);
});

test('a limit that comes back after an answer is ended by a person who tries, not by other answers', () => {
  const { send, facts } = start(3);
  const limits = (since: number, until: number): void =>
    send({ type: 'backend.parked', parking: { ...parking, since, until } });
  limits(100, 1_000);
  send(answered('bd-busy', 200));
  limits(300, 1_200);
  send(answered('bd-busy', 400));
  expect(freedIn(facts)).toHaveLength(1);

  send({
    ...{ type: 'slot.requested', at: 500 },
    request: { ...place('bd-tries'), triesNow: true },
  } as SupervisorEvent);
  send(answered('bd-tries', 600));
  expect(freedIn(facts)).toHaveLength(2);

  limits(5_000, 6_000);
  send(answered('bd-busy', 5_500));
  expect(freedIn(facts), 'a later limit counts anew').toHaveLength(3);
});

test('a limit counts until its time, and not for a person who tries now', () => {
  const { send, facts, granted } = start(3);
  send({ type: 'backend.parked', parking });

  const asks = (id: string, at: number, triesNow: boolean): void =>
    send({ type: 'slot.requested', request: { ...place(id), triesNow }, at });
  asks('bd-early', 999, false);
  asks('bd-tries', 999, true);
  asks('bd-after', 1_000, false);

  expect(toldOf(facts)).toEqual(['bd-early']);
  expect(granted()).toEqual(['bd-tries', 'bd-after']);
});
