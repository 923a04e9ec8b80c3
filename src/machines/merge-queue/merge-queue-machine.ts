import { assign, type SnapshotFrom, setup } from 'xstate';
import { declareActor } from '../declare-actor.ts';
import { messageOf } from '../message-of.ts';
import type { TaskId } from '../task.ts';
import {
  afterBatch,
  afterTest,
  endedByError,
  endedByLanding,
  endedByObstacle,
  ending,
  isFound,
  isTheOnlyOne,
  isWithdrawn,
  type Landed,
  leaving,
  type MergeQueueContext,
  type MergeQueueEvent,
  type MergeQueueInput,
  nextBatch,
  type Outcome,
  type Proven,
  type QueueMember,
  refusedByTest,
  searchIn,
  type Train,
  withdrawing,
  withMembers,
} from './merge-queue-context.ts';

type WithOutput<Output> = { readonly event: { readonly output: Output } };
const outputOf = <Output>({ event }: WithOutput<Output>): { readonly output: Output } => ({
  output: event.output,
});
const wholeContext = ({ context }: { context: MergeQueueContext }) => context;

const mergeQueueSetup = setup({
  types: {
    context: {} as MergeQueueContext,
    events: {} as MergeQueueEvent,
    input: {} as MergeQueueInput,
  },
  actors: {
    build: declareActor<Train, MergeQueueContext>('build'),
    test: declareActor<Proven, MergeQueueContext>('test'),
    land: declareActor<Landed, MergeQueueContext>('land'),
    tell: declareActor<void, MergeQueueContext>('tell'),
  },
  guards: {
    hasMembers: ({ context }) => context.members.length > 0,
    isJudged: ({ context: { train } }) =>
      train?.cars.length === 0 || (train?.ended.length ?? 0) > 0,
    hasCarsToLand: ({ context }) => isFound(context) && context.green > 0,
    isRed: ({ context }) => isFound(context),
    isTheOnlyOne: ({ context }, { ticket }: { ticket: string }) => isTheOnlyOne(context, ticket),
    isInBatch: ({ context }, { taskId }: { taskId: TaskId }) =>
      context.batch.some((member) => isWithdrawn(member, taskId)),
    hasMoved: (_, { output }: { output: Landed }) => output.status === 'moved',
  },
  actions: {
    addMembers: assign(({ context }, { members }: { members: readonly QueueMember[] }) =>
      withMembers(context, members),
    ),
    removeTicket: assign(({ context }, { ticket }: { ticket: string }) => leaving(context, ticket)),
    removeWaiting: assign(({ context }, { ticket }: { ticket: string }) => ({
      members: leaving(context, ticket).members,
    })),
    withdraw: assign(({ context }, gone: Pick<Outcome, 'taskId' | 'merged'>) =>
      withdrawing(context, gone, true),
    ),
    withdrawWaiting: assign(({ context }, gone: Pick<Outcome, 'taskId' | 'merged'>) =>
      withdrawing(context, gone, false),
    ),
    takeBatch: assign(({ context }) => {
      const batch = nextBatch(context);
      return { batch, members: context.members.filter((member) => !batch.includes(member)) };
    }),
    keepTrain: assign(({ context }, { output }: { output: Train }) => ({
      train: output,
      ...searchIn(context, output),
    })),
    keepProof: assign(({ context }, { output }: { output: Proven }) => afterTest(context, output)),
    endUnmerged: assign(({ context }) => ending(context, context.train?.ended ?? [])),
    endRed: assign(({ context }) => ending(context, refusedByTest(context))),
    endLanded: assign(({ context }, { output }: { output: Landed }) => {
      switch (output.status) {
        case 'landed':
          return ending(context, endedByLanding(context, output));
        case 'stopped':
          return endedByObstacle(context, output.why);
        default:
          return {};
      }
    }),
    endFailed: assign(({ context }, { why }: { why: string }) =>
      ending(context, endedByError(context, why)),
    ),
    settleBatch: assign(({ context }) => afterBatch(context)),
  },
});

const ticketOf = ({ event }: { event: { readonly ticket: string } }) => ({ ticket: event.ticket });
const goneOf = ({ event }: { event: Pick<Outcome, 'taskId' | 'merged'> }) => ({
  taskId: event.taskId,
  merged: event.merged,
});
const onError = {
  target: 'telling',
  actions: {
    type: 'endFailed',
    params: ({ event }: { event: { readonly error: unknown } }) => ({
      why: messageOf(event.error),
    }),
  },
} as const;
/** Without the member that goes, the batch is another one. */
const again = { target: 'building', reenter: true } as const;
const removeTicket = { type: 'removeTicket', params: ticketOf } as const;
const withdraw = { type: 'withdraw', params: goneOf } as const;
const whileItWaits = {
  leave: [
    { guard: { type: 'isTheOnlyOne', params: ticketOf }, ...again, actions: removeTicket },
    { actions: removeTicket },
  ],
  withdraw: [
    { guard: { type: 'isInBatch', params: goneOf }, ...again, actions: withdraw },
    { actions: withdraw },
  ],
} as const;

/**
 * The queue of merges into the project's branch. Members are merged onto the branch together, and
 * the branch moves only to a tree that was tested. Of a batch that fails, the most members that pass
 * without the one after them land, and that one is refused.
 */
export const mergeQueueMachine = mergeQueueSetup.createMachine({
  id: 'mergeQueue',
  context: ({ input }) => ({
    ...input,
    batch: [],
    train: null,
    green: -1,
    red: 1,
    commands: null,
    failure: null,
    ended: [],
    outcomes: [],
  }),
  initial: 'idle',
  on: {
    join: {
      actions: { type: 'addMembers', params: ({ event }) => ({ members: event.members }) },
    },
    leave: { actions: { type: 'removeWaiting', params: ticketOf } },
    withdraw: { actions: { type: 'withdrawWaiting', params: goneOf } },
  },
  states: {
    idle: {
      meta: { says: 'takes the next members: dependencies first, then by priority and age' },
      always: [
        { guard: 'hasMembers', target: 'building', actions: 'takeBatch' },
        { target: 'empty' },
      ],
    },
    building: {
      meta: { says: 'merges each member of the batch onto the branch and those before it' },
      on: whileItWaits,
      invoke: {
        id: 'build',
        src: 'build',
        input: wholeContext,
        onDone: { target: 'judging', actions: { type: 'keepTrain', params: outputOf<Train> } },
        onError,
      },
    },
    judging: {
      meta: {
        says: 'who cannot be merged is told first; half of what lies between what passes and what fails is tested next',
      },
      always: [
        { guard: 'isJudged', target: 'telling', actions: 'endUnmerged' },
        { guard: 'hasCarsToLand', target: 'landing' },
        { guard: 'isRed', target: 'telling', actions: 'endRed' },
        { target: 'testing' },
      ],
    },
    testing: {
      meta: { says: 'runs the setup and the commands on the tree of the first cars' },
      on: whileItWaits,
      invoke: {
        id: 'test',
        src: 'test',
        input: wholeContext,
        onDone: { target: 'judging', actions: { type: 'keepProof', params: outputOf<Proven> } },
        onError,
      },
    },
    landing: {
      meta: { says: 'moves the branch to the tree that passed, if it is where it was' },
      invoke: {
        id: 'land',
        src: 'land',
        input: wholeContext,
        onDone: [
          { guard: { type: 'hasMoved', params: outputOf<Landed> }, target: 'building' },
          { target: 'telling', actions: { type: 'endLanded', params: outputOf<Landed> } },
        ],
        onError,
      },
    },
    telling: {
      meta: { says: 'writes down what came of each member; then who waits is answered' },
      invoke: {
        id: 'tell',
        src: 'tell',
        input: wholeContext,
        onDone: { target: 'idle', actions: 'settleBatch' },
        onError: { target: 'idle', actions: 'settleBatch' },
      },
    },
    empty: { type: 'final', meta: { says: 'no member is left' } },
  },
});

export type MergeQueueSnapshot = SnapshotFrom<typeof mergeQueueMachine>;
