import {
  failsAgain,
  type PullRequestContext,
  type Seen,
  stateKey,
} from '../../../machines/pull-request/pull-request-context.ts';
import { pullRequestMachine } from '../../../machines/pull-request/pull-request-machine.ts';
import type { TaskId } from '../../../machines/task.ts';
import { hostedKey } from '../../journal/replay/replay.ts';
import { readEach, readSnapshot } from '../../journal/snapshots.ts';
import type { PullRequestView } from '../../journal/task-view.ts';
import type { ActorReads } from '../../store/port.ts';
import { pullRequestId } from './pull-request-view.ts';

export interface ExplainedPullRequest
  extends Pick<PullRequestView, 'number' | 'url' | 'state' | 'waits_for' | 'reason'> {
  /** Of one that is open. */
  readonly guards: readonly {
    readonly guard: string;
    readonly value: boolean;
    readonly inputs: Readonly<Record<string, unknown>>;
  }[];
}

type Facts = Readonly<Record<string, unknown>>;
type Guard = (args: { readonly context: PullRequestContext }, params?: Facts) => boolean;
type GuardName =
  | 'hasChecks'
  | 'hasReview'
  | 'isMergeable'
  | 'hasOthersCommits'
  | 'hasOtherBase'
  | 'isFlaky'
  | 'wantsAttempt'
  | 'isOutdated'
  | 'mayMerge';
const chartGuards = pullRequestMachine.implementations.guards as unknown as Readonly<
  Record<GuardName, Guard>
>;

/** Needs of its merge. */
const needsOf = (context: PullRequestContext, seen: Seen): ExplainedPullRequest['guards'] => {
  const { checks, red, review, mergeable } = seen;
  const { hasChecks, hasReview, isMergeable } = chartGuards;
  return [
    {
      guard: 'hasChecks',
      // A repository without checks asks for none.
      value: ['green', 'none'].some((each) => hasChecks({ context }, { checks: each })),
      inputs: { checks, red },
    },
    {
      guard: 'hasReview',
      value: hasReview({ context }, { review: 'approved' }),
      inputs: { review },
    },
    {
      guard: 'isMergeable',
      value: isMergeable({ context }, { mergeable: 'yes' }),
      inputs: { mergeable },
    },
  ];
};

/** Decisions of `deciding`, in the order of the chart. */
const decisionsOf = (context: PullRequestContext, seen: Seen): ExplainedPullRequest['guards'] => {
  const { task, checks, review, mergeable, draft, base, areOver: are_over, rules } = seen;
  const { onChecks: on_checks, onComments: on_comments, maxRounds: max_rounds, merge } = rules;
  const { round, fix } = context;
  const said = seen.said.length;
  const tried = context.tried === stateKey(context);
  const own_head = context.published?.headSha === seen.headSha;
  const inputs: Readonly<Partial<Record<GuardName, Facts>>> = {
    hasOthersCommits: { task, own_head },
    hasOtherBase: { task, base },
    isFlaky: { task, checks, are_over, on_checks, fix },
    wantsAttempt: {
      task,
      checks,
      are_over,
      said,
      fix,
      on_checks,
      on_comments,
      round,
      max_rounds,
      fails_again: failsAgain(context),
    },
    isOutdated: { task, mergeable, on_checks, round, max_rounds, tried },
    mayMerge: { task, merge, draft, base, review, checks, mergeable, said, own_head, tried },
  };
  return Object.entries(inputs).map(([guard, facts]) => ({
    guard,
    value: chartGuards[guard as GuardName]({ context }),
    inputs: facts ?? {},
  }));
};

const guardsOf = (context: PullRequestContext): ExplainedPullRequest['guards'] => {
  const { seen } = context;
  return seen === null ? [] : [...needsOf(context, seen), ...decisionsOf(context, seen)];
};

/** How it stands, with the guards that its merge needs. */
export const explainPullRequest = async (
  store: Pick<ActorReads, 'actors'>,
  taskId: TaskId,
  { number, url, state, waits_for, reason }: PullRequestView,
): Promise<ExplainedPullRequest> => {
  const rows =
    state === 'open' ? await store.actors([hostedKey('pullRequest', pullRequestId(taskId))]) : [];
  const [guards = []] = readEach(rows, (saved) =>
    readSnapshot(saved, ({ context }) => guardsOf(context as unknown as PullRequestContext)),
  );
  return { number, url, state, waits_for, reason, guards };
};
