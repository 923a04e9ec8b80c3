import { assign, emit, enqueueActions, setup } from 'xstate';
import type { AgentStart } from '../agent/agent-context.ts';
import { agentMachine } from '../agent/agent-machine.ts';
import { messageOf } from '../message-of.ts';
import { parkedOutcome } from '../task/task-selectors.ts';
import {
  type AttemptKey,
  type AttemptOutcome,
  type Failure,
  noUsage,
  type Parking,
  type Role,
  type TaskId,
} from '../task.ts';
import {
  atWork,
  type BackendAnswer,
  endsLimit,
  limitFor,
  mayWait,
  nextReturning,
  nextWaiting,
  pauseOf,
  type SupervisorContext,
  type SupervisorEvent,
  type SupervisorFact,
  type SupervisorInput,
  slotGuards,
  streakAfter,
  streakAtMost,
  testedLimit,
  withLent,
  withoutParking,
  withParking,
} from './supervisor-context.ts';

import {
  emptyQueue,
  requestsIn,
  type SlotRequest,
  waitingRoles,
  withoutTask,
  withRequest,
} from './waiting-queue.ts';

type AskedSlot = { readonly request: SlotRequest; readonly at: number };

const crashed = (error: unknown): AttemptOutcome => {
  const failure: Failure = {
    code: 'internal',
    message: messageOf(error),
    facts: {},
    retryable: false,
  };
  return { status: 'failed', failure, usage: noUsage };
};

const slotIsFree = (context: SupervisorContext): boolean =>
  slotGuards.slotIsFree({ context }, { roles: waitingRoles(context.waiting) });

/**
 * The queue, the slots and the running agents. More than `cap` tasks run only after the cap was
 * lowered, or after a restart. A task that waits for a person lends its slot (ADR 0017). A free
 * slot goes first to a task that wants its lent slot back, then to the highest priority, then to the
 * oldest request; a role at its cap is passed over. The supervisor spawns the agents,
 * stops them when they end, and survives each of them.
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
    queueHasRoom: ({ context }, params: { request: SlotRequest }) =>
      slotGuards.queueHasRoom({ context }, params),
    slotIsFree: ({ context }) => slotIsFree(context),
    mayReturn: ({ context }) => nextReturning(context) !== undefined,
    isTripped: ({ context }) => (context.streak?.count ?? 0) >= streakAtMost,
    hasRecovered: ({ context }) => context.streak === null,
    mayProbeAgain: ({ context }) =>
      atWork(context).length === 0 && nextReturning(context) !== undefined,
    mayProbe: ({ context }) => atWork(context).length === 0 && slotIsFree(context),
    hasSlot: ({ context }, { request }: { request: SlotRequest }) =>
      context.holding.some(({ taskId }) => taskId === request.taskId),
    endsLimit: ({ context }, answer: BackendAnswer) => endsLimit(context, answer),
    meetsLimit: ({ context }, { request, at }: AskedSlot) =>
      mayWait(context, request) && limitFor(context, request, at) !== null,
    holdsSlot: ({ context }, { key }: { key: string }) =>
      context.holding.some(({ taskId }) => key.startsWith(`${taskId}#`)),
  },
  actions: {
    enqueue: enqueueActions(({ context, enqueue }, { request }: { request: SlotRequest }) => {
      enqueue.assign({ waiting: withRequest(context.waiting, request) });
      enqueue.emit({ type: 'slot.queued', taskId: request.taskId });
    }),
    tellParked: enqueueActions(({ context, enqueue }, { request, at }: AskedSlot) => {
      const parking = limitFor(context, request, at);
      const { taskId } = request;
      if (parking === null) return;
      enqueue.assign({ waiting: withoutTask(context.waiting, taskId) });
      enqueue.emit({ type: 'slot.queued', taskId });
      enqueue.emit({ type: 'slot.parked', taskId, parking });
    }),
    parkBackend: enqueueActions(
      ({ context, enqueue }, { parking }: { parking: Parking | null }) => {
        // A budget holds up runs, not a backend: each run is asked about it when it begins.
        if (parking === null || parking.budget !== undefined) return;
        enqueue.assign({ parkings: withParking(context.parkings, parking) });
        const stops = ({ backend, triesNow }: SlotRequest): boolean =>
          backend === parking.backend && !triesNow;
        let { waiting } = context;
        for (const { taskId } of requestsIn(waiting).filter(stops)) {
          waiting = withoutTask(waiting, taskId);
          enqueue.emit({ type: 'slot.parked', taskId, parking });
        }
        enqueue.assign({ waiting });
      },
    ),
    freeBackend: enqueueActions(
      ({ context, enqueue }, { backend }: { backend: string | undefined }) => {
        if (backend === undefined || context.parkings[backend] === undefined) return;
        enqueue.assign(withoutParking(context, backend));
        enqueue.emit({ type: 'backend.freed', backend });
      },
    ),
    tellGrant: emit((_, { request }: { request: SlotRequest }) => ({
      type: 'slot.granted' as const,
      taskId: request.taskId,
    })),
    refusePlace: emit(({ context }, { request }: { request: SlotRequest }) => ({
      type: 'slot.refused' as const,
      taskId: request.taskId,
      limit: context.queueLimit,
    })),
    leaveQueue: assign({
      waiting: ({ context }, { taskId }: { taskId: TaskId }) =>
        withoutTask(context.waiting, taskId),
    }),
    hold: assign({
      holding: (
        { context },
        { taskId, role, lent = false }: { taskId: TaskId; role: Role; lent?: boolean },
      ) =>
        context.holding.some((holder) => holder.taskId === taskId)
          ? context.holding
          : [...context.holding, { taskId, role, lent }],
    }),
    lend: assign({
      holding: ({ context }, { taskId }: { taskId: TaskId }) =>
        withLent(context.holding, taskId, true),
    }),
    want: enqueueActions(({ context, enqueue }, { taskId }: { taskId: TaskId }) => {
      const holder = context.holding.find((each) => each.taskId === taskId);
      if (holder?.lent === false) enqueue.emit({ type: 'slot.regained', taskId });
      else if (holder !== undefined && !context.returning.includes(taskId))
        enqueue.assign({ returning: [...context.returning, taskId] });
    }),
    giveSlotAgain: enqueueActions(({ context, enqueue }) => {
      const holder = nextReturning(context);
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
      returning: ({ context }, { taskId }: { taskId: TaskId }) =>
        context.returning.filter((each) => each !== taskId),
    }),
    setCaps: assign((_, { cap, roleCaps, queueLimit }: SupervisorInput) => ({
      cap,
      roleCaps,
      queueLimit,
    })),
    grantNext: enqueueActions(({ context, enqueue }) => {
      const request = nextWaiting(context);
      if (request === undefined) return;
      enqueue.assign({
        waiting: withoutTask(context.waiting, request.taskId),
        holding: [
          ...context.holding,
          {
            taskId: request.taskId,
            role: request.role,
            lent: false,
            tries: request.triesNow ? (request.backend ?? undefined) : undefined,
          },
        ],
      });
      enqueue.emit({ type: 'slot.granted', taskId: request.taskId });
    }),
    startAgent: enqueueActions(
      ({ enqueue }, { key, input }: { key: AttemptKey; input: AgentStart }) => {
        enqueue.spawnChild('agent', { id: key, input });
      },
    ),
    dismiss: enqueueActions(({ enqueue }, { key }: { key: string }) => {
      enqueue.stopChild(key);
      enqueue.emit({ type: 'agent.gone', key });
    }),
    reap: enqueueActions(
      ({ enqueue }, { key, outcome }: { key: string; outcome: AttemptOutcome }) => {
        enqueue.stopChild(key);
        enqueue.assign({ streak: ({ context }) => streakAfter(context.streak, outcome) });
        enqueue.emit({ type: 'agent.ended', key, outcome });
        enqueue.emit({ type: 'agent.gone', key });
      },
    ),
    beginPause: assign({ pauses: ({ context }) => context.pauses + 1 }),
    tellPause: emit(({ context }) => ({ type: 'queue.paused' as const, ms: pauseOf(context) })),
    /** One more failure of the same kind pauses the queue again. */
    beginProbe: assign({
      streak: ({ context }) =>
        context.streak === null ? null : { ...context.streak, count: streakAtMost - 1 },
    }),
    forgetPauses: assign({ pauses: 0 }),
    refuseAgent: emit((_, { key }: { key: string }) => ({
      type: 'agent.ended' as const,
      key,
      outcome: crashed('an agent was requested for a task without a slot'),
    })),
  },
}).createMachine({
  id: 'supervisor',
  context: ({ input }) => ({
    cap: input?.cap ?? 0,
    roleCaps: input?.roleCaps ?? {},
    queueLimit: input?.queueLimit ?? 0,
    streak: null,
    pauses: 0,
    waiting: emptyQueue,
    holding: [],
    returning: [],
    parkings: {},
    endedEarly: {},
  }),
  initial: 'restoring',
  on: {
    'slot.requested': [
      {
        guard: { type: 'hasSlot', params: ({ event }) => event },
        actions: { type: 'tellGrant', params: ({ event }) => event },
      },
      {
        guard: { type: 'meetsLimit', params: ({ event }) => event },
        actions: { type: 'tellParked', params: ({ event }) => event },
      },
      {
        guard: { type: 'queueHasRoom', params: ({ event }) => event },
        actions: { type: 'enqueue', params: ({ event }) => event },
      },
      { actions: { type: 'refusePlace', params: ({ event }) => event } },
    ],
    'slot.retaken': { actions: { type: 'hold', params: ({ event }) => event } },
    'slot.lent': { actions: { type: 'lend', params: ({ event }) => event } },
    'slot.wanted': { actions: { type: 'want', params: ({ event }) => event } },
    'slot.returned': {
      actions: [
        { type: 'leaveQueue', params: ({ event }) => event },
        { type: 'giveBack', params: ({ event }) => event },
      ],
    },
    'backend.parked': { actions: { type: 'parkBackend', params: ({ event }) => event } },
    'backend.answered': {
      guard: { type: 'endsLimit', params: ({ event }) => event },
      actions: { type: 'freeBackend', params: ({ event }) => event },
    },
    'backend.changed': { actions: { type: 'freeBackend', params: ({ event }) => event } },
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
      actions: [
        { type: 'parkBackend', params: parkedOutcome },
        {
          type: 'freeBackend',
          params: ({ context, event }) => ({
            backend:
              event.output.status === 'done'
                ? testedLimit(context, (taskId) => event.actorId.startsWith(`${taskId}#`))
                : undefined,
          }),
        },
        {
          type: 'reap',
          params: ({ event }) => ({ key: event.actorId, outcome: event.output }),
        },
      ],
    },
    'xstate.error.actor.*': {
      actions: {
        type: 'reap',
        params: ({ event }) => ({ key: event.actorId, outcome: crashed(event.error) }),
      },
    },
  },
  states: {
    restoring: {
      meta: {
        says: 'the tasks of an earlier process return to the queue; no slot is granted until all have',
      },
      on: { 'queue.opened': 'open', drain: 'draining' },
    },
    open: {
      meta: { says: 'free slots go to waiting tasks' },
      always: [
        { guard: 'isTripped', target: 'paused' },
        { guard: 'mayReturn', actions: 'giveSlotAgain' },
        { guard: 'slotIsFree', actions: 'grantNext' },
      ],
      on: { drain: 'draining' },
    },
    paused: {
      meta: {
        says: 'the provider is down: several attempts in a row failed with the same error; no slot is granted until the pause ends',
      },
      entry: ['beginPause', 'tellPause'],
      always: { guard: 'hasRecovered', target: 'open', actions: 'forgetPauses' },
      on: { 'pause.over': 'probing', drain: 'draining' },
    },
    probing: {
      meta: { says: 'one task gets a slot, to test whether the provider answers again' },
      entry: 'beginProbe',
      always: [
        { guard: 'hasRecovered', target: 'open', actions: 'forgetPauses' },
        { guard: 'isTripped', target: 'paused' },
        { guard: 'mayProbeAgain', actions: 'giveSlotAgain' },
        { guard: 'mayProbe', actions: 'grantNext' },
      ],
      on: { drain: 'draining' },
    },
    draining: {
      meta: { says: 'the server is stopping: tasks with a slot continue, no slot is granted' },
      always: { guard: 'mayReturn', actions: 'giveSlotAgain' },
    },
  },
});
