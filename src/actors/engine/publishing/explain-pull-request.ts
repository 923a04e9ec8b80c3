import type { PullRequestContext } from '../../../machines/pull-request/pull-request-context.ts';
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

type Guard = (
  args: { readonly context: PullRequestContext },
  params: Readonly<Record<string, string>>,
) => boolean;
const chartGuards = pullRequestMachine.implementations.guards as unknown as Readonly<
  Record<'hasChecks' | 'hasReview' | 'isMergeable', Guard>
>;

const guardsOf = (context: PullRequestContext): ExplainedPullRequest['guards'] => {
  const { seen } = context;
  if (seen === null) return [];
  const { checks, red, review, mergeable } = seen;
  const evaluate = (guard: keyof typeof chartGuards, params: Readonly<Record<string, string>>) =>
    chartGuards[guard]({ context }, params);
  return [
    {
      guard: 'hasChecks',
      // A repository without checks asks for none.
      value: ['green', 'none'].some((each) => evaluate('hasChecks', { checks: each })),
      inputs: { checks, red },
    },
    {
      guard: 'hasReview',
      value: evaluate('hasReview', { review: 'approved' }),
      inputs: { review },
    },
    {
      guard: 'isMergeable',
      value: evaluate('isMergeable', { mergeable: 'yes' }),
      inputs: { mergeable },
    },
  ];
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
