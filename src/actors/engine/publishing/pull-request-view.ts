import { plural, someOf } from '../../../machines/plural.ts';
import type {
  PullRequestContext,
  Seen,
} from '../../../machines/pull-request/pull-request-machine.ts';
import type { TaskId } from '../../../machines/task.ts';
import { hostedKey } from '../../journal/replay/replay-hosted.ts';
import { readEach, readSnapshot } from '../../journal/snapshots.ts';
import type { PullRequestView, TaskView } from '../../journal/task-view.ts';
import type { ActorReads } from '../../store/port.ts';

/** The id of its actor, and of its history. */
export const pullRequestId = (taskId: TaskId): string => `${taskId}/pr`;

const stateOf = (value: unknown): PullRequestView['state'] => {
  const top = typeof value === 'string' ? value : Object.keys(value as object)[0];
  return top === 'abandoning' ? 'abandoned' : (top as PullRequestView['state']);
};

/** For one that is open. */
const waitsOf = ({
  red,
  checks,
  review,
  mergeable,
}: Seen): Pick<PullRequestView, 'waits_for' | 'reason'> => {
  if (mergeable === 'conflicting')
    return { waits_for: 'person', reason: 'it conflicts with the branch that it goes to' };
  if (checks === 'red')
    return {
      waits_for: 'person',
      reason: `${plural(red.length, 'check')} failed: ${someOf(red, 3)}`,
    };
  if (review === 'changes') return { waits_for: 'person', reason: 'a review asks for changes' };
  if (checks === 'pending') return { waits_for: 'checks', reason: 'its checks are not over' };
  if (review === 'none') return { waits_for: 'review', reason: 'nobody has approved it yet' };
  return { waits_for: 'person', reason: 'a person merges it at the forge' };
};

export const viewOfPullRequest = (
  value: unknown,
  { published, seen, problem }: PullRequestContext,
): PullRequestView => {
  const state = stateOf(value);
  const waits =
    problem !== null
      ? {
          waits_for: problem.needs,
          ...(problem.fault === undefined ? {} : { fault: problem.fault }),
          reason: problem.message,
        }
      : state === 'publishing'
        ? ({ waits_for: 'forge' } as const)
        : state === 'open' && seen !== null
          ? waitsOf(seen)
          : {};
  return {
    ...(published === null ? {} : { number: published.number, url: published.url }),
    state,
    ...(seen === null
      ? {}
      : { checks: seen.checks, review: seen.review, mergeable: seen.mergeable }),
    round: 0,
    ...(published === null ? {} : { head_sha: seen?.headSha ?? published.headSha }),
    ...waits,
  };
};

/** Adds the pull requests of tasks. */
export const withPullRequests = async (
  store: Pick<ActorReads, 'actors'> | null,
  views: readonly TaskView[],
): Promise<readonly TaskView[]> => {
  const keys = views
    .filter(({ attempt }) => attempt > 0)
    .map(({ task_id }) => hostedKey('pullRequest', pullRequestId(task_id as TaskId)));
  const rows = keys.length === 0 ? [] : ((await store?.actors(keys)) ?? []);
  if (rows.length === 0) return views;
  const found = new Map(
    readEach(rows, (saved) =>
      readSnapshot(saved, ({ value, context }) => {
        const known = context as unknown as PullRequestContext;
        return [known.taskId as string, viewOfPullRequest(value, known)] as const;
      }),
    ),
  );
  return views.map((view) => {
    const pull_request = found.get(view.task_id);
    return pull_request === undefined ? view : { ...view, pull_request };
  });
};
