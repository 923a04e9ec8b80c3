import { assign, type SnapshotFrom, setup } from 'xstate';
import { declareActor } from '../declare-actor.ts';
import { messageOf } from '../message-of.ts';
import {
  type Asked,
  type Checks,
  type GivenFeedback,
  hasOtherBase,
  hasOthersCommits,
  isFlaky,
  isOutdated,
  type MergeAnswer,
  type Mergeable,
  mayMerge,
  noteGreen,
  noteRed,
  type Published,
  type PublishWish,
  type PullRequestContext,
  type PullRequestInput,
  type Review,
  type Seen,
  stateKey,
  type Taken,
  type Updated,
  unanswered,
  wantsAttempt,
  withTaken,
} from './pull-request-context.ts';

export type PullRequestEvent =
  /** A person asks for it, or the end of an attempt. */
  | ({ readonly type: 'publish'; readonly attempt: number } & PublishWish)
  /** A person wants an attempt that mends what checks and comments say, whatever the rules are. */
  | { readonly type: 'fix' };

type PublishEvent = Extract<PullRequestEvent, { type: 'publish' }>;

const pullRequestSetup = setup({
  types: {
    context: {} as PullRequestContext,
    events: {} as PullRequestEvent,
    input: {} as PullRequestInput,
  },
  actors: {
    publish: declareActor<Asked<Published>, PullRequestContext>('publish'),
    /** Answers the comments that the attempt got. */
    reply: declareActor<Asked<readonly Taken[]>, PullRequestContext>('reply'),
    /** Resolves when it is another than it was seen last. */
    watch: declareActor<Asked<Seen>, PullRequestContext>('watch'),
    /** Brings commits of others on its branch into the work. */
    takeIn: declareActor<Asked<Published>, PullRequestContext>('takeIn'),
    /** @returns false where checks cannot be run again */
    rerun: declareActor<Asked<boolean>, PullRequestContext>('rerun'),
    /** Gives what checks and comments say to the next attempt; null: the task went on without it. */
    mend: declareActor<Asked<GivenFeedback>, PullRequestContext>('mend'),
    update: declareActor<Asked<Updated>, PullRequestContext>('update'),
    merge: declareActor<Asked<MergeAnswer>, PullRequestContext>('merge'),
    abandon: declareActor<Asked<boolean>, PullRequestContext>('abandon'),
  },
  guards: {
    isProblem: (_, { output }: { output: Asked<unknown> }) => 'problem' in output,
    needsPerson: (_, { output }: { output: Asked<unknown> }) =>
      'problem' in output && output.problem.needs === 'person',
    isAnswer: (_, { output, answer }: { output: Asked<unknown>; answer: unknown }) =>
      'done' in output && output.done === answer,
    isState: ({ context }, { state }: { state: Seen['state'] }) => context.seen?.state === state,
    isTask: ({ context }, { task }: { task: Seen['task'] }) => context.seen?.task === task,
    hasChecks: ({ context }, { checks }: { checks: Checks }) =>
      (context.seen?.checks ?? 'pending') === checks,
    hasReview: ({ context }, { review }: { review: Review }) =>
      (context.seen?.review ?? 'none') === review,
    isMergeable: ({ context }, { mergeable }: { mergeable: Mergeable }) =>
      (context.seen?.mergeable ?? 'unknown') === mergeable,
    hasUnanswered: ({ context }) => unanswered(context).length > 0,
    hasOtherBase: ({ context }) => hasOtherBase(context),
    hasOthersCommits: ({ context }) => hasOthersCommits(context),
    isFlaky: ({ context }) => !context.fix && isFlaky(context),
    wantsAttempt: ({ context }) => wantsAttempt(context),
    isOutdated: ({ context }) => isOutdated(context),
    mayMerge: ({ context }) => mayMerge(context),
  },
  actions: {
    takeWish: assign(({ context }, wish: Omit<PublishEvent, 'type'>) => ({
      ...wish,
      problem: null,
      tried: null,
      asked: context.asked + 1,
    })),
    wantFix: assign({ fix: true }),
    forgetFix: assign({ fix: false }),
    keepPublished: assign((_, { output }: { output: Asked<Published> }) =>
      'problem' in output
        ? {}
        : { published: output.done, attempt: output.done.attempt, seen: null, problem: null },
    ),
    /** A forge may show the head of before a push for a while: it is looked at again after a pause. */
    keepTakenIn: assign(({ context }, { output }: { output: Asked<Published> }) =>
      'problem' in output || output.done.headSha === context.published?.headSha
        ? {}
        : { published: output.done, seen: null },
    ),
    keepAnswered: assign((_, { output }: { output: Asked<readonly Taken[]> }) =>
      'problem' in output ? {} : { taken: output.done },
    ),
    keepSeen: assign(({ context }, { output }: { output: Asked<Seen> }) =>
      'problem' in output
        ? {}
        : { seen: output.done, problem: null, trees: noteGreen(context, output.done) },
    ),
    keepMended: assign(({ context }, { output }: { output: Asked<GivenFeedback> }) => {
      if ('problem' in output || output.done.mended === null) return { fix: false };
      const { taken, red } = output.done.mended;
      return {
        round: context.round + 1,
        taken: withTaken(context, taken),
        trees: noteRed(context, red),
        fix: false,
      };
    }),
    noteRerun: assign(({ context }) => ({ trees: noteRed(context, context.seen?.red ?? []) })),
    countRound: assign(({ context }) => ({ round: context.round + 1 })),
    noteTried: assign(({ context }) => ({ tried: stateKey(context), refused: null })),
    noteRefused: assign(({ context }, { output }: { output: Asked<unknown> }) => ({
      tried: stateKey(context),
      refused: 'problem' in output ? output.problem : null,
    })),
    lookAgain: assign({ seen: null }),
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
const noteRefused = { type: 'noteRefused', params: outputOf<Asked<unknown>> } as const;
const keepProblem = { type: 'keepProblem', params: outputOf<Asked<unknown>> } as const;
const isAnswer = (answer: MergeAnswer | Updated | boolean) =>
  ({
    type: 'isAnswer',
    params: ({ event }: { readonly event: { readonly output: Asked<unknown> } }) => ({
      output: event.output,
      answer,
    }),
  }) as const;
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
const keepSeen = { type: 'keepSeen', params: outputOf<Asked<Seen>> } as const;
const keepPublished = { type: 'keepPublished', params: outputOf<Asked<Published>> } as const;
const watching = {
  meta: { says: 'asks the forge how it stands, less often while nothing moves' },
  invoke: {
    id: 'watch',
    src: 'watch',
    input: wholeContext,
    onDone: [
      { guard: isProblem, ...again('watching'), actions: keepProblem },
      { ...again('watching'), actions: keepSeen },
    ],
    onError: onError('watching'),
  },
} as const;

/**
 * The pull request of a task at the forge: its branch is pushed, then its checks, its reviews and its
 * end are followed. What checks and comments say begins the next attempt of its task. A person merges
 * or closes it there, or the server merges it by the rules.
 */
export const pullRequestMachine = pullRequestSetup.createMachine({
  id: 'pullRequest',
  context: ({ input }) => ({
    ...input,
    published: null,
    seen: null,
    problem: null,
    asked: 1,
    round: 0,
    taken: [],
    trees: [],
    fix: false,
    tried: null,
  }),
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
              { target: 'pushed', actions: keepPublished },
            ],
            onError: onError('pushing'),
          },
        },
        pushed: {
          always: [{ guard: 'hasUnanswered', target: 'replying' }, { target: '#pullRequest.open' }],
        },
        replying: {
          meta: { says: 'answers each comment that the attempt got, once' },
          invoke: {
            id: 'reply',
            src: 'reply',
            input: wholeContext,
            onDone: [
              // Who may not answer may still go on.
              { guard: needsPerson, target: '#pullRequest.open', actions: keepProblem },
              { guard: isProblem, ...again('replying'), actions: keepProblem },
              {
                target: '#pullRequest.open',
                actions: { type: 'keepAnswered', params: outputOf<Asked<readonly Taken[]>> },
              },
            ],
            onError: onError('replying'),
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
        forge: {
          initial: 'watching',
          states: {
            watching: {
              ...watching,
              on: { fix: { target: 'deciding', actions: 'wantFix' } },
              invoke: {
                ...watching.invoke,
                onDone: [
                  { guard: isProblem, ...again('watching'), actions: keepProblem },
                  { target: 'deciding', actions: keepSeen },
                ],
              },
            },
            deciding: {
              meta: { says: 'decides what follows from what was seen' },
              always: [
                { guard: 'hasOthersCommits', target: 'takingIn' },
                { guard: 'hasOtherBase', target: '#pullRequest.publishing' },
                { guard: 'isFlaky', target: 'rerunning' },
                { guard: 'wantsAttempt', target: 'mending' },
                { guard: 'isOutdated', target: 'updating' },
                { guard: 'mayMerge', target: '#pullRequest.merging' },
                { target: 'watching', actions: 'forgetFix' },
              ],
            },
            takingIn: {
              meta: { says: 'brings commits of others on its branch into the work' },
              invoke: {
                id: 'takeIn',
                src: 'takeIn',
                input: wholeContext,
                onDone: [
                  { guard: needsPerson, target: 'watching', actions: keepProblem },
                  { guard: isProblem, ...again('takingIn'), actions: keepProblem },
                  {
                    target: 'watching',
                    actions: { type: 'keepTakenIn', params: outputOf<Asked<Published>> },
                  },
                ],
                onError: onError('takingIn'),
              },
            },
            rerunning: {
              meta: { says: 'runs failed checks again, which passed on the same tree before' },
              invoke: {
                id: 'rerun',
                src: 'rerun',
                input: wholeContext,
                onDone: [
                  { guard: isAnswer(true), target: 'watching', actions: 'noteRerun' },
                  { guard: needsPerson, target: 'watching', actions: ['noteRerun', keepProblem] },
                  { guard: isProblem, ...again('rerunning'), actions: keepProblem },
                  { target: 'mending' },
                ],
                onError: onError('rerunning'),
              },
            },
            mending: {
              meta: { says: 'gives what checks and comments say to the next attempt of its task' },
              invoke: {
                id: 'mend',
                src: 'mend',
                input: wholeContext,
                onDone: [
                  { guard: needsPerson, target: 'watching', actions: [keepProblem, 'forgetFix'] },
                  { guard: isProblem, ...again('mending'), actions: keepProblem },
                  {
                    target: 'watching',
                    actions: { type: 'keepMended', params: outputOf<Asked<GivenFeedback>> },
                  },
                ],
                onError: onError('mending'),
              },
            },
            updating: {
              meta: { says: 'brings what is new on its base into the work, and tests it' },
              invoke: {
                id: 'update',
                src: 'update',
                input: wholeContext,
                onDone: [
                  {
                    guard: isAnswer('updated'),
                    target: '#pullRequest.publishing',
                    actions: 'noteTried',
                  },
                  {
                    guard: isAnswer('sent_back'),
                    target: 'watching',
                    actions: ['noteTried', 'countRound'],
                  },
                  { guard: needsPerson, target: 'watching', actions: [noteRefused, keepProblem] },
                  { guard: isProblem, ...again('updating'), actions: keepProblem },
                  { target: 'watching', actions: 'noteTried' },
                ],
                onError: onError('updating'),
              },
            },
          },
        },
      },
    },
    merging: {
      meta: { says: 'tests it on its base, then merges the commit that was seen' },
      invoke: {
        id: 'merge',
        src: 'merge',
        input: wholeContext,
        onDone: [
          { guard: isAnswer('updated'), target: 'publishing', actions: 'noteTried' },
          { guard: needsPerson, target: 'open', actions: [noteRefused, keepProblem] },
          { guard: isProblem, ...again('merging'), actions: keepProblem },
          { guard: isAnswer('moved'), target: 'open', actions: 'lookAgain' },
          {
            guard: isAnswer('sent_back'),
            target: 'open',
            actions: ['noteTried', 'countRound', 'lookAgain'],
          },
          { target: 'open', actions: ['noteTried', 'lookAgain'] },
        ],
        onError: onError('merging'),
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
    merged: { type: 'final', meta: { says: 'its work is on its base' } },
    abandoned: { type: 'final', meta: { says: 'nobody wants it any more' } },
  },
});

export type PullRequestSnapshot = SnapshotFrom<typeof pullRequestMachine>;
