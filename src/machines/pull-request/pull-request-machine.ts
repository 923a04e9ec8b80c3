import { assign, type SnapshotFrom, setup } from 'xstate';
import { declareActor } from '../declare-actor.ts';
import { messageOf } from '../message-of.ts';
import type { TaskId } from '../task.ts';

export type Checks = 'pending' | 'red' | 'green' | 'none';
export type Review = 'none' | 'changes' | 'approved';
export type Mergeable = 'yes' | 'behind' | 'conflicting' | 'unknown';

/** How people asked for it. */
export interface PublishWish {
  readonly draft: boolean;
  /** Null: the branch that the repository names. */
  readonly base: string | null;
}

export interface PullRequestInput extends PublishWish {
  readonly taskId: TaskId;
  readonly attempt: number;
}

/** What stands at the forge after a push. */
export interface Published {
  readonly number: number;
  readonly url: string;
  readonly headSha: string;
  readonly attempt: number;
  /** Epoch ms. */
  readonly at: number;
}

/** What a look found. */
export interface Seen {
  readonly state: 'open' | 'merged' | 'closed' | 'gone';
  readonly headSha: string;
  readonly checks: Checks;
  /** Names of the checks that failed. */
  readonly red: readonly string[];
  readonly review: Review;
  readonly mergeable: Mergeable;
  readonly mergeCommit?: string;
  /** Another attempt of its task is complete, or nobody wants its work any more. */
  readonly task: 'same' | 'newer' | 'unwanted';
}

/** Why the forge did not do it. A person mends it, or it is tried again, at `retryAt` (epoch ms) or soon. */
export interface PullRequestProblem {
  readonly needs: 'person' | 'limit' | 'forge';
  /** What the forge said, in one word. */
  readonly fault?: string;
  readonly message: string;
  readonly retryAt: number | null;
}

export interface PullRequestContext extends PullRequestInput {
  readonly published: Published | null;
  readonly seen: Seen | null;
  readonly problem: PullRequestProblem | null;
  /** How often somebody asked to publish it. */
  readonly asked: number;
}

/** A person asks for it, or the end of an attempt. */
export type PullRequestEvent = {
  readonly type: 'publish';
  readonly attempt: number;
} & PublishWish;

/** What came of a request to the forge. The journal keeps it, so a problem is no error. */
export type Asked<Result> = { readonly done: Result } | { readonly problem: PullRequestProblem };

const pullRequestSetup = setup({
  types: {
    context: {} as PullRequestContext,
    events: {} as PullRequestEvent,
    input: {} as PullRequestInput,
  },
  actors: {
    publish: declareActor<Asked<Published>, PullRequestContext>('publish'),
    /** Resolves when it is another than it was seen last. */
    watch: declareActor<Asked<Seen>, PullRequestContext>('watch'),
    abandon: declareActor<Asked<boolean>, PullRequestContext>('abandon'),
  },
  guards: {
    isProblem: (_, { output }: { output: Asked<unknown> }) => 'problem' in output,
    needsPerson: (_, { output }: { output: Asked<unknown> }) =>
      'problem' in output && output.problem.needs === 'person',
    isState: ({ context }, { state }: { state: Seen['state'] }) => context.seen?.state === state,
    isTask: ({ context }, { task }: { task: Seen['task'] }) => context.seen?.task === task,
    hasChecks: ({ context }, { checks }: { checks: Checks }) =>
      (context.seen?.checks ?? 'pending') === checks,
    hasReview: ({ context }, { review }: { review: Review }) =>
      (context.seen?.review ?? 'none') === review,
    isMergeable: ({ context }, { mergeable }: { mergeable: Mergeable }) =>
      (context.seen?.mergeable ?? 'unknown') === mergeable,
  },
  actions: {
    takeWish: assign(({ context }, wish: Omit<PullRequestEvent, 'type'>) => ({
      ...wish,
      problem: null,
      asked: context.asked + 1,
    })),
    keepPublished: assign((_, { output }: { output: Asked<Published> }) =>
      'problem' in output
        ? {}
        : { published: output.done, attempt: output.done.attempt, seen: null, problem: null },
    ),
    keepSeen: assign((_, { output }: { output: Asked<Seen> }) =>
      'problem' in output ? {} : { seen: output.done, problem: null },
    ),
    keepProblem: assign((_, { output }: { output: Asked<unknown> }) =>
      'problem' in output ? { problem: output.problem } : {},
    ),
    keepFailure: assign((_, { error }: { error: unknown }) => ({
      problem: { needs: 'forge' as const, message: messageOf(error), retryAt: null },
    })),
  },
});

const wholeContext = ({ context }: { context: PullRequestContext }) => context;
const outputOf = <Output>({ event }: { readonly event: { readonly output: Output } }) => ({
  output: event.output,
});
const isProblem = { type: 'isProblem', params: outputOf<Asked<unknown>> } as const;
const needsPerson = { type: 'needsPerson', params: outputOf<Asked<unknown>> } as const;
const keepProblem = { type: 'keepProblem', params: outputOf<Asked<unknown>> } as const;
/** It is asked again, after a pause. */
const again = <Target extends string>(target: Target) => ({ target, reenter: true }) as const;
const onError = <Target extends string>(target: Target) =>
  ({
    ...again(target),
    actions: {
      type: 'keepFailure',
      params: ({ event }: { readonly event: { readonly error: unknown } }) => ({
        error: event.error,
      }),
    },
  }) as const;

const checksTo = (...all: readonly Checks[]) =>
  all.map((checks) => ({
    target: checks,
    guard: { type: 'hasChecks', params: { checks } } as const,
  }));
const reviewTo = (...all: readonly Review[]) =>
  all.map((review) => ({
    target: review,
    guard: { type: 'hasReview', params: { review } } as const,
  }));
const mergeableTo = (...all: readonly Mergeable[]) =>
  all.map((mergeable) => ({
    target: mergeable,
    guard: { type: 'isMergeable', params: { mergeable } } as const,
  }));
const toState = (state: Seen['state']) => ({ type: 'isState', params: { state } }) as const;
const toTask = (task: Seen['task']) => ({ type: 'isTask', params: { task } }) as const;
const watching = {
  meta: { says: 'asks the forge how it stands, less often while nothing moves' },
  invoke: {
    id: 'watch',
    src: 'watch',
    input: wholeContext,
    onDone: [
      { guard: isProblem, ...again('watching'), actions: keepProblem },
      { ...again('watching'), actions: { type: 'keepSeen', params: outputOf<Asked<Seen>> } },
    ],
    onError: onError('watching'),
  },
} as const;

/**
 * The pull request of a task at the forge: its branch is pushed, then its checks, its reviews and its
 * end are followed. A person merges or closes it there.
 */
export const pullRequestMachine = pullRequestSetup.createMachine({
  id: 'pullRequest',
  context: ({ input }) => ({ ...input, published: null, seen: null, problem: null, asked: 1 }),
  initial: 'publishing',
  on: {
    publish: {
      target: '.publishing',
      actions: { type: 'takeWish', params: ({ event: { type: _, ...wish } }) => wish },
    },
  },
  states: {
    publishing: {
      initial: 'pushing',
      states: {
        pushing: {
          meta: { says: 'pushes the work, then opens the pull request or brings it up to date' },
          invoke: {
            id: 'publish',
            src: 'publish',
            input: wholeContext,
            onDone: [
              { guard: needsPerson, target: 'refused', actions: keepProblem },
              { guard: isProblem, ...again('pushing'), actions: keepProblem },
              {
                target: '#pullRequest.open',
                actions: { type: 'keepPublished', params: outputOf<Asked<Published>> },
              },
            ],
            onError: onError('pushing'),
          },
        },
        refused: { meta: { says: 'waits for a person, who mends it and publishes again' } },
      },
    },
    open: {
      meta: { says: 'follows what is seen at the forge' },
      type: 'parallel',
      always: [
        { guard: toState('merged'), target: 'merged' },
        { guard: toState('gone'), target: 'abandoned' },
        { guard: toTask('unwanted'), target: 'abandoning' },
        { guard: toState('closed'), target: 'closed' },
        { guard: toTask('newer'), target: 'publishing' },
      ],
      states: {
        checks: {
          initial: 'pending',
          states: {
            pending: { always: checksTo('red', 'green', 'none') },
            red: { always: checksTo('pending', 'green', 'none') },
            green: { always: checksTo('pending', 'red', 'none') },
            none: { always: checksTo('pending', 'red', 'green') },
          },
        },
        review: {
          initial: 'none',
          states: {
            none: { always: reviewTo('changes', 'approved') },
            changes: { always: reviewTo('none', 'approved') },
            approved: { always: reviewTo('none', 'changes') },
          },
        },
        mergeable: {
          initial: 'unknown',
          states: {
            unknown: { always: mergeableTo('yes', 'behind', 'conflicting') },
            yes: { always: mergeableTo('unknown', 'behind', 'conflicting') },
            behind: { always: mergeableTo('unknown', 'yes', 'conflicting') },
            conflicting: { always: mergeableTo('unknown', 'yes', 'behind') },
          },
        },
        forge: { initial: 'watching', states: { watching } },
      },
    },
    closed: {
      meta: { says: 'a person closed it, and may open it again' },
      initial: 'watching',
      always: [
        { guard: toState('open'), target: 'open' },
        { guard: toState('merged'), target: 'merged' },
        { guard: toState('gone'), target: 'abandoned' },
      ],
      states: { watching },
    },
    abandoning: {
      meta: { says: 'closes it, since nobody wants the work' },
      invoke: {
        id: 'abandon',
        src: 'abandon',
        input: wholeContext,
        onDone: [
          { guard: needsPerson, target: 'abandoned', actions: keepProblem },
          { guard: isProblem, ...again('abandoning'), actions: keepProblem },
          { target: 'abandoned' },
        ],
        onError: onError('abandoning'),
      },
    },
    merged: { type: 'final', meta: { says: 'a person merged it at the forge' } },
    abandoned: { type: 'final', meta: { says: 'nobody wants it any more' } },
  },
});

export type PullRequestSnapshot = SnapshotFrom<typeof pullRequestMachine>;
