import { assign, type DoneActorEvent, type ErrorActorEvent, emit, enqueueActions, setup } from 'xstate';
import type { AgentStart } from './agent-context.ts';
import { agentMachine } from './agent-machine.ts';
import type { AttemptKey, AttemptOutcome, Failure, Role, TaskId } from './task.ts';
import { noUsage } from './task.ts';

/** A task in the queue for a slot. */
export interface Place {
  readonly taskId: TaskId;
  readonly role: Role;
  /** 0 (first) to 4. */
  readonly priority: number;
  readonly submittedAt: number;
}

export interface SupervisorInput {
  /** How many tasks may hold a slot at once. */
  readonly cap: number;
  readonly roleCaps: Readonly<Partial<Record<Role, number>>>;
}

/** Attempts that failed one after the other in the same way, which is not theirs. */
interface Streak {
  readonly kind: string;
  readonly count: number;
  /** What the last of them said. */
  readonly message: string;
}

/** A task that has a slot; while a person is waited for it is lent to whoever is next. */
export interface Holder {
  readonly taskId: TaskId;
  readonly role: Role;
  readonly lent: boolean;
}

export interface SupervisorContext extends SupervisorInput {
  readonly streak: Streak | null;
  /** How often the queue has been paused without a success in between. */
  readonly pauses: number;
  /** In the order in which they will get a slot: priority first, then first come. */
  readonly waiting: readonly Place[];
  readonly holding: readonly Holder[];
  /** Those who lent their slot and want it again, in the order in which they asked. */
  readonly returning: readonly TaskId[];
}

export type SupervisorEvent =
  | { readonly type: 'slot.requested'; readonly place: Place }
  | { readonly type: 'slot.retaken'; readonly taskId: TaskId; readonly role: Role; readonly lent?: boolean }
  | { readonly type: 'slot.lent'; readonly taskId: TaskId }
  | { readonly type: 'slot.wanted'; readonly taskId: TaskId }
  | { readonly type: 'slot.returned'; readonly taskId: TaskId }
  | { readonly type: 'agent.requested'; readonly key: AttemptKey; readonly input: AgentStart }
  | { readonly type: 'agent.dismissed'; readonly key: AttemptKey }
  | ({ readonly type: 'caps.changed' } & SupervisorInput)
  /** The time that was told with `queue.paused` has passed. */
  | { readonly type: 'pause.over' }
  | { readonly type: 'drain' }
  | DoneActorEvent<AttemptOutcome>
  | ErrorActorEvent;

/** What observers wait for: a task got its slot, nobody gets one for a while, an agent ended or is gone. */
export type SupervisorFact =
  | { readonly type: 'slot.granted'; readonly taskId: TaskId }
  /** Who lent its slot has it again. */
  | { readonly type: 'slot.regained'; readonly taskId: TaskId }
  /** To be answered with `pause.over` after so many ms. */
  | { readonly type: 'queue.paused'; readonly ms: number }
  | { readonly type: 'agent.ended'; readonly key: string; readonly outcome: AttemptOutcome }
  /** It ended or was dismissed: nothing will be asked of it any more. */
  | { readonly type: 'agent.gone'; readonly key: string };

/** So many attempts that fail alike say that the provider is down, not that the tasks are hard. */
export const streakAtMost = 5;
const firstPauseMs = 30_000;
const longestPauseMs = 10 * 60_000;

/** How long the queue stays paused (ms). */
export const pauseOf = ({ pauses }: Pick<SupervisorContext, 'pauses'>): number =>
  Math.min(firstPauseMs * 2 ** Math.max(0, pauses - 1), longestPauseMs);

/** A failure of the provider that may pass counts; every other end proves that it answers. */
const streakAfter = (streak: Streak | null, outcome: AttemptOutcome): Streak | null => {
  if (outcome.status === 'done') return null;
  const { code, retryable, facts, message } = outcome.failure;
  if (code !== 'model_failed' || !retryable) return null;
  const kind = String(facts['kind'] ?? '');
  return { kind, count: streak?.kind === kind ? streak.count + 1 : 1, message };
};

const before = (one: Place, other: Place): boolean =>
  one.priority !== other.priority ? one.priority < other.priority : one.submittedAt < other.submittedAt;

const insert = (waiting: readonly Place[], place: Place): readonly Place[] => {
  const others = waiting.filter(({ taskId }) => taskId !== place.taskId);
  const index = others.findIndex((other) => before(place, other));
  return index < 0 ? [...others, place] : [...others.slice(0, index), place, ...others.slice(index)];
};

/** Who holds a slot and has not lent it: no more than the cap at any instant. */
export const atWork = ({ holding }: Pick<SupervisorContext, 'holding'>): readonly Holder[] =>
  holding.filter(({ lent }) => !lent);

const roomFor = (context: SupervisorContext, role: Role): boolean =>
  atWork(context).filter((holder) => holder.role === role).length <
  (context.roleCaps[role] ?? Number.POSITIVE_INFINITY);

/** The first of the queue whose role has room, when a slot is free. */
const next = (context: SupervisorContext): Place | undefined =>
  atWork(context).length < context.cap ? context.waiting.find(({ role }) => roomFor(context, role)) : undefined;

/** The first of those who want their slot again; they come before the queue, for they have begun. */
const nextBack = (context: SupervisorContext): Holder | undefined =>
  atWork(context).length < context.cap
    ? context.returning
        .flatMap((taskId) => context.holding.filter((holder) => holder.taskId === taskId))
        .find(({ role }) => roomFor(context, role))
    : undefined;

const withLent = (holding: readonly Holder[], taskId: TaskId, lent: boolean): readonly Holder[] =>
  holding.map((holder) => (holder.taskId === taskId ? { ...holder, lent } : holder));

const crashed = (error: unknown): AttemptOutcome => {
  const failure: Failure = {
    code: 'internal',
    message: error instanceof Error ? error.message : String(error),
    facts: {},
    retryable: false,
  };
  return { status: 'failed', failure, usage: noUsage };
};

/**
 * Who waits, who holds a slot, and the agents at work (Spec 1.5, Spec 8). No more tasks than the cap are at work at any
 * instant; who waits for a person lends its slot (ADR 0017); a free slot goes to the highest priority, then to who came first. It spawns the agents of the holders, reaps
 * them when they end, and outlives every one of them.
 */
export const supervisorMachine = setup({
  types: {
    context: {} as SupervisorContext,
    input: {} as SupervisorInput,
    events: {} as SupervisorEvent,
    emitted: {} as SupervisorFact,
    children: {} as Record<string, 'agent'>,
  },
  actors: { agent: agentMachine },
  guards: {
    hasRoom: ({ context }) => next(context) !== undefined,
    mayReturn: ({ context }) => nextBack(context) !== undefined,
    isTripped: ({ context }) => (context.streak?.count ?? 0) >= streakAtMost,
    hasRecovered: ({ context }) => context.streak === null,
    mayProbeAgain: ({ context }) => atWork(context).length === 0 && nextBack(context) !== undefined,
    mayProbe: ({ context }) => atWork(context).length === 0 && next(context) !== undefined,
    holdsSlot: ({ context }, { key }: { key: string }) =>
      context.holding.some(({ taskId }) => key.startsWith(`${taskId}#`)),
  },
  actions: {
    enqueue: assign({ waiting: ({ context }, { place }: { place: Place }) => insert(context.waiting, place) }),
    leaveQueue: assign({
      waiting: ({ context }, { taskId }: { taskId: TaskId }) =>
        context.waiting.filter((place) => place.taskId !== taskId),
    }),
    hold: assign({
      holding: ({ context }, { taskId, role, lent = false }: { taskId: TaskId; role: Role; lent?: boolean }) =>
        context.holding.some((holder) => holder.taskId === taskId)
          ? context.holding
          : [...context.holding, { taskId, role, lent }],
    }),
    lend: assign({
      holding: ({ context }, { taskId }: { taskId: TaskId }) => withLent(context.holding, taskId, true),
    }),
    want: enqueueActions(({ context, enqueue }, { taskId }: { taskId: TaskId }) => {
      const holder = context.holding.find((each) => each.taskId === taskId);
      if (holder?.lent === false) enqueue.emit({ type: 'slot.regained', taskId });
      else if (holder !== undefined && !context.returning.includes(taskId))
        enqueue.assign({ returning: [...context.returning, taskId] });
    }),
    giveSlotAgain: enqueueActions(({ context, enqueue }) => {
      const holder = nextBack(context);
      if (holder === undefined) return;
      const { taskId } = holder;
      enqueue.assign({
        returning: context.returning.filter((each) => each !== taskId),
        holding: withLent(context.holding, taskId, false),
      });
      enqueue.emit({ type: 'slot.regained', taskId });
    }),
    giveBack: assign({
      holding: ({ context }, { taskId }: { taskId: TaskId }) =>
        context.holding.filter((holder) => holder.taskId !== taskId),
      returning: ({ context }, { taskId }: { taskId: TaskId }) => context.returning.filter((each) => each !== taskId),
    }),
    setCaps: assign((_, { cap, roleCaps }: SupervisorInput) => ({ cap, roleCaps })),
    grantNext: enqueueActions(({ context, enqueue }) => {
      const place = next(context);
      if (place === undefined) return;
      enqueue.assign({
        waiting: context.waiting.filter(({ taskId }) => taskId !== place.taskId),
        holding: [...context.holding, { taskId: place.taskId, role: place.role, lent: false }],
      });
      enqueue.emit({ type: 'slot.granted', taskId: place.taskId });
    }),
    startAgent: enqueueActions(({ enqueue }, { key, input }: { key: AttemptKey; input: AgentStart }) => {
      enqueue.spawnChild('agent', { id: key, input });
    }),
    dismiss: enqueueActions(({ enqueue }, { key }: { key: string }) => {
      enqueue.stopChild(key);
      enqueue.emit({ type: 'agent.gone', key });
    }),
    reap: enqueueActions(({ enqueue }, { key, outcome }: { key: string; outcome: AttemptOutcome }) => {
      enqueue.stopChild(key);
      enqueue.assign({ streak: ({ context }) => streakAfter(context.streak, outcome) });
      enqueue.emit({ type: 'agent.ended', key, outcome });
      enqueue.emit({ type: 'agent.gone', key });
    }),
    beginPause: assign({ pauses: ({ context }) => context.pauses + 1 }),
    tellPause: emit(({ context }) => ({ type: 'queue.paused' as const, ms: pauseOf(context) })),
    /** The next failure of the same kind trips it again. */
    beginProbe: assign({
      streak: ({ context }) => (context.streak === null ? null : { ...context.streak, count: streakAtMost - 1 }),
    }),
    forgetPauses: assign({ pauses: 0 }),
    refuseAgent: emit((_, { key }: { key: string }) => ({
      type: 'agent.ended' as const,
      key,
      outcome: crashed('an agent was requested for a task that holds no slot'),
    })),
  },
}).createMachine({
  id: 'supervisor',
  context: ({ input }) => ({
    cap: input?.cap ?? 0,
    roleCaps: input?.roleCaps ?? {},
    streak: null,
    pauses: 0,
    waiting: [],
    holding: [],
    returning: [],
  }),
  initial: 'open',
  on: {
    'slot.retaken': { actions: { type: 'hold', params: ({ event }) => event } },
    'slot.lent': { actions: { type: 'lend', params: ({ event }) => event } },
    'slot.wanted': { actions: { type: 'want', params: ({ event }) => event } },
    'slot.returned': {
      actions: [
        { type: 'leaveQueue', params: ({ event }) => event },
        { type: 'giveBack', params: ({ event }) => event },
      ],
    },
    'agent.requested': [
      {
        guard: { type: 'holdsSlot', params: ({ event }) => event },
        actions: { type: 'startAgent', params: ({ event }) => event },
      },
      { actions: { type: 'refuseAgent', params: ({ event }) => event } },
    ],
    'agent.dismissed': { actions: { type: 'dismiss', params: ({ event }) => event } },
    'caps.changed': { actions: { type: 'setCaps', params: ({ event }) => event } },
    'xstate.done.actor.*': {
      actions: { type: 'reap', params: ({ event }) => ({ key: event.actorId, outcome: event.output }) },
    },
    'xstate.error.actor.*': {
      actions: { type: 'reap', params: ({ event }) => ({ key: event.actorId, outcome: crashed(event.error) }) },
    },
  },
  states: {
    open: {
      meta: { says: 'free slots are given to those who wait' },
      always: [
        { guard: 'isTripped', target: 'paused' },
        { guard: 'mayReturn', actions: 'giveSlotAgain' },
        { guard: 'hasRoom', actions: 'grantNext' },
      ],
      on: {
        'slot.requested': { actions: { type: 'enqueue', params: ({ event }) => event } },
        drain: 'draining',
      },
    },
    paused: {
      meta: { says: 'the provider is down: attempt after attempt failed alike; nobody gets a slot for a while' },
      entry: ['beginPause', 'tellPause'],
      always: { guard: 'hasRecovered', target: 'open', actions: 'forgetPauses' },
      on: {
        'pause.over': 'probing',
        'slot.requested': { actions: { type: 'enqueue', params: ({ event }) => event } },
        drain: 'draining',
      },
    },
    probing: {
      meta: { says: 'one gets a slot, to see whether the provider answers again' },
      entry: 'beginProbe',
      always: [
        { guard: 'hasRecovered', target: 'open', actions: 'forgetPauses' },
        { guard: 'isTripped', target: 'paused' },
        { guard: 'mayProbeAgain', actions: 'giveSlotAgain' },
        { guard: 'mayProbe', actions: 'grantNext' },
      ],
      on: {
        'slot.requested': { actions: { type: 'enqueue', params: ({ event }) => event } },
        drain: 'draining',
      },
    },
    draining: {
      meta: { says: 'the server is stopping: who holds a slot goes on, nobody gets one' },
      always: { guard: 'mayReturn', actions: 'giveSlotAgain' },
      on: { 'slot.requested': { actions: { type: 'enqueue', params: ({ event }) => event } } },
    },
  },
});
