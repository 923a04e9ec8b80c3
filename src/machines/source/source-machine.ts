import { assign, type SnapshotFrom, setup } from 'xstate';
import { declareActor } from '../declare-actor.ts';
import { messageOf } from '../message-of.ts';
import type { ForgeProblem } from './forge-problem.ts';

/** Names the issues that become tasks. */
export interface SourceInput {
  readonly id: string;
  /** `owner/name`; null: that of the project's forge. */
  readonly repository: string | null;
  /** An issue has all of them. */
  readonly labels: readonly string[];
  /** Earlier entries of the journal are not written back. */
  readonly cursor: number;
}

/** What a look did. */
export interface SourceSeen {
  /** Open issues with the labels. */
  readonly issues: number;
  readonly made: number;
  readonly changed: number;
  /** Tasks whose issue was closed, lost its label, or is gone. */
  readonly ended: number;
  /** Up to this entry of the journal, results were written back. */
  readonly cursor: number;
  /** Epoch ms. */
  readonly at: number;
}

export interface SourceContext extends SourceInput {
  readonly seen: SourceSeen | null;
  readonly problem: ForgeProblem | null;
}

/** `over`: the configuration does not name it any more. */
export type Followed =
  | { readonly done: SourceSeen }
  | { readonly problem: ForgeProblem }
  | { readonly over: true };

const sourceSetup = setup({
  types: {
    context: {} as SourceContext,
    events: {} as { readonly type: 'none' },
    input: {} as SourceInput,
  },
  actors: {
    /** Resolves when a look did something, or could not be done. */
    follow: declareActor<Followed, SourceContext>('follow'),
  },
  guards: {
    isOver: (_, { output }: { output: Followed }) => 'over' in output,
    needs: (_, { output, who }: { output: Followed; who: ForgeProblem['needs'] }) =>
      'problem' in output && output.problem.needs === who,
  },
  actions: {
    keepSeen: assign(({ context }, { output }: { output: Followed }) =>
      'done' in output
        ? { seen: output.done, cursor: output.done.cursor, problem: null }
        : { seen: context.seen },
    ),
    keepProblem: assign(({ context }, { output }: { output: Followed }) =>
      'problem' in output ? { problem: output.problem } : { problem: context.problem },
    ),
    keepFailure: assign((_, { error }: { error: unknown }) => ({
      problem: {
        needs: 'forge' as const,
        fault: 'away',
        message: messageOf(error),
        retryAt: null,
      },
    })),
  },
});

const outputOf = ({ event }: { readonly event: { readonly output: Followed } }) => ({
  output: event.output,
});
const toProblem = <Target extends string>(who: ForgeProblem['needs'], target: Target) =>
  ({
    target,
    reenter: true,
    guard: {
      type: 'needs',
      params: ({ event }: { readonly event: { readonly output: Followed } }) => ({
        output: event.output,
        who,
      }),
    },
    actions: { type: 'keepProblem', params: outputOf },
  }) as const;

const following = <Says extends string>(says: Says) =>
  ({
    meta: { says },
    invoke: {
      id: 'follow',
      src: 'follow',
      input: ({ context }: { readonly context: SourceContext }) => context,
      onDone: [
        { guard: { type: 'isOver', params: outputOf }, target: 'over' },
        toProblem('limit', 'parked'),
        toProblem('person', 'refused'),
        toProblem('forge', 'away'),
        {
          target: 'reading',
          reenter: true,
          actions: { type: 'keepSeen', params: outputOf },
        },
      ],
      onError: {
        target: 'away',
        reenter: true,
        actions: {
          type: 'keepFailure',
          params: ({ event }: { readonly event: { readonly error: unknown } }) => ({
            error: event.error,
          }),
        },
      },
    },
  }) as const;

/** Keeps tasks in step with issues of a forge. */
export const sourceMachine = sourceSetup.createMachine({
  id: 'source',
  context: ({ input }) => ({ ...input, seen: null, problem: null }),
  initial: 'reading',
  states: {
    reading: following('reads the issues, less often while nothing moves'),
    parked: following('waits for the end of a limit of the forge, then reads again'),
    refused: following('a person has to mend something; it looks again now and then'),
    away: following('the forge does not answer, or failed; it tries again'),
    over: { type: 'final', meta: { says: 'the configuration does not name it any more' } },
  },
});

export type SourceSnapshot = SnapshotFrom<typeof sourceMachine>;
