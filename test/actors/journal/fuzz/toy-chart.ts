import {
  type AnyActorRef,
  assign,
  createMachine,
  type EventObject,
  emit,
  enqueueActions,
  fromCallback,
  fromPromise,
  raise,
  sendTo,
  setup,
} from 'xstate';

/** What the toy chart does to the world around it. */
export interface ToyWorld {
  now(): number;
  /** A name for the transition that is being computed. */
  nameTransition(): number;
  did(what: string, transition: number): void;
  peer(): AnyActorRef;
  job(input: JobInput, signal: AbortSignal): Promise<number>;
  helps(transition: number): () => void;
  wrong(what: string): void;
}

export interface JobInput {
  readonly actor: string;
  readonly transition: number;
}

interface ToyContext {
  readonly actor: string;
  /** The transition that led here. */
  readonly transition: number;
  readonly jobOf: number;
  readonly enteredAt: number;
}

type ToyEvent =
  | {
      readonly type: 'go' | 'again' | 'back' | 'poke' | 'help' | 'cancel' | 'note.one';
      readonly n?: number;
    }
  | { readonly type: 'raised' };

/**
 * Effects of every kind: custom, emit, sendTo, spawned and invoked children, raise, always and
 * after.
 */
export const createToyChart = (world: ToyWorld) => {
  const act = [
    'name',
    {
      type: 'do',
      params: ({ context }: { context: ToyContext }) => ({ transition: context.transition }),
    },
    'tell',
    'tellPeer',
  ] as const;
  return setup({
    types: {
      context: {} as ToyContext,
      input: {} as { actor: string },
      events: {} as ToyEvent,
      emitted: {} as { type: 'moved'; transition: number },
    },
    actors: {
      job: fromPromise<number, JobInput>(({ input, signal }) => world.job(input, signal)),
      short: createMachine({ initial: 'end', states: { end: { type: 'final' } } }),
      helper: fromCallback<EventObject, { transition: number }>(({ input }) =>
        world.helps(input.transition),
      ),
    },
    actions: {
      name: assign({ transition: () => world.nameTransition() }),
      enter: assign({ enteredAt: () => world.now() }),
      beginJob: assign({ jobOf: ({ context }) => context.transition }),
      do: (_, { transition }: { transition: number }) => world.did('action', transition),
      tell: emit(({ context }) => ({ type: 'moved' as const, transition: context.transition })),
      tellPeer: sendTo(
        () => world.peer(),
        ({ context }) => ({ type: 'told', transition: context.transition }),
      ),
      help: enqueueActions(({ context, enqueue }) => {
        enqueue.stopChild('helper');
        enqueue.spawnChild('helper', { id: 'helper', input: { transition: context.transition } });
      }),
      endJob: ({ context }, { output }: { output: number }) => {
        if (output !== context.jobOf)
          world.wrong(`the end of job ${output} counts for job ${context.jobOf}`);
      },
      endRest: ({ context }) => {
        if (world.now() - context.enteredAt < 30)
          world.wrong('the timer of an earlier state fired');
      },
    },
  }).createMachine({
    id: 'toy',
    context: ({ input }) => ({ actor: input?.actor ?? '', transition: 0, jobOf: 0, enteredAt: 0 }),
    initial: 'idle',
    output: ({ context }) => context.transition,
    on: { 'note.*': { actions: act } },
    states: {
      idle: {
        on: {
          go: { target: 'working', actions: act },
          help: { actions: [...act, 'help'] },
          cancel: { target: 'cancelling', actions: act },
        },
      },
      working: {
        entry: 'beginJob',
        invoke: {
          id: 'job',
          src: 'job',
          input: ({ context }) => ({ actor: context.actor, transition: context.transition }),
          onDone: {
            target: 'resting',
            actions: [
              ...act,
              { type: 'endJob', params: ({ event }) => ({ output: event.output }) },
            ],
          },
          onError: { target: 'raising', actions: act },
        },
        on: {
          again: { target: 'working', reenter: true, actions: act },
          poke: { actions: act },
          cancel: { target: 'cancelling', actions: act },
        },
      },
      resting: {
        entry: 'enter',
        after: { 30: { target: 'working', actions: ['endRest', ...act] } },
        on: {
          back: { target: 'resting', reenter: true, actions: act },
          go: { target: 'delegating', actions: act },
          cancel: { target: 'cancelling', actions: act },
        },
      },
      raising: {
        entry: raise({ type: 'raised' }),
        on: {
          raised: { target: 'passing', actions: act },
          cancel: { target: 'cancelling', actions: act },
        },
      },
      passing: { always: { target: 'idle', actions: act } },
      delegating: {
        invoke: { id: 'short', src: 'short', onDone: { target: 'idle', actions: act } },
        on: { cancel: { target: 'cancelling', actions: act } },
      },
      cancelling: {
        entry: 'beginJob',
        invoke: {
          id: 'release',
          src: 'job',
          input: ({ context }) => ({ actor: context.actor, transition: context.transition }),
          onDone: { target: 'over', actions: act },
          onError: { target: 'over', actions: act },
        },
      },
      over: { type: 'final' },
    },
  });
};
