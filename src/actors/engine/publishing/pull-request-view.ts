import { plural, someOf } from '../../../machines/plural.ts';
import {
  failsAgain,
  type PullRequestContext,
  refusalOf,
  type Seen,
  unanswered,
  wantsAttempt,
} from '../../../machines/pull-request/pull-request-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import { hostedKey } from '../../journal/replay/replay.ts';
import { readEach, readSnapshot } from '../../journal/snapshots.ts';
import type { PullRequestView, TaskView } from '../../journal/task-view.ts';
import type { ActorReads } from '../../store/port.ts';

/** The id of its actor, and of its history. */
export const pullRequestId = (taskId: TaskId): string => `${taskId}/pr`;

const stateOf = (value: unknown): PullRequestView['state'] => {
  const top = typeof value === 'string' ? value : Object.keys(value as object)[0];
  return top === 'abandoning' ? 'abandoned' : (top as PullRequestView['state']);
};

type Waits = Pick<PullRequestView, 'waits_for' | 'reason'>;
const person = (reason: string): Waits => ({ waits_for: 'person', reason });

/** Checks that failed, or comments, where no attempt mends them by itself. */
const unmended = (context: PullRequestContext, seen: Seen): Waits | null => {
  const { round, fix } = context;
  const failed = `${plural(seen.red.length, 'check')} failed: ${someOf(seen.red, 3)}`;
  const asked = plural(seen.said.length, 'comment');
  const isRed = seen.checks === 'red';
  if (fix || wantsAttempt(context)) return null;
  if (isRed && failsAgain(context)) return person(`${failed}, as before on the same files`);
  const spent = round >= seen.rules.maxRounds ? `, after ${plural(round, 'attempt')} for it` : '';
  if (isRed && (seen.areOver || spent !== '') && seen.rules.onChecks !== 'ignore')
    return person(`${failed}${spent}`);
  return seen.said.length > 0 ? person(`${asked} without an answer${spent}`) : null;
};

/** For one that is open. */
const waitsOf = (context: PullRequestContext, seen: Seen): Waits => {
  const { task, mergeable, checks, review, draft, rules, base } = seen;
  if (task === 'busy') return { waits_for: 'checks', reason: 'another attempt is at work' };
  if (task === 'reopened')
    return person('its task was opened again: its next attempt is pushed when it is complete');
  if (task === 'failed') return person('its last attempt failed');
  const mends = unmended(context, seen);
  if (mends !== null) return mends;
  const refused = refusalOf(context);
  if (refused !== null) return { waits_for: refused.needs, reason: refused.message };
  if (mergeable === 'conflicting') return person('it conflicts with the branch that it goes to');
  if (checks === 'red' && rules.onChecks !== 'ignore')
    return { waits_for: 'checks', reason: `failed: ${someOf(seen.red, 3)}; others are not over` };
  if (review === 'changes') return { waits_for: 'review', reason: 'a review asks for changes' };
  if (checks === 'pending') return { waits_for: 'checks', reason: 'its checks are not over' };
  if (draft) return person('it is a draft');
  if (context.tried !== null && rules.merge === 'queue')
    return { waits_for: 'forge', reason: 'the forge merges it when its rules allow' };
  if (base === 'stacked')
    return { waits_for: 'forge', reason: 'the pull request that it depends on lands first' };
  if (mergeable === 'unknown')
    return { waits_for: 'forge', reason: 'the forge does not say yet whether it fits its base' };
  if (review === 'none') return { waits_for: 'review', reason: 'nobody has approved it yet' };
  return person('a person merges it at the forge');
};

/** For one that is at work. */
const busyWaits = (context: PullRequestContext, state: 'publishing' | 'merging'): Waits => {
  const left = state === 'publishing' ? unanswered(context).length : 0;
  const reason = left === 0 ? {} : { reason: `${plural(left, 'answer')} to be written there` };
  return { waits_for: 'forge', ...reason };
};

export const viewOfPullRequest = (value: unknown, context: PullRequestContext): PullRequestView => {
  const { published, seen, problem, round } = context;
  const state = stateOf(value);
  const waits =
    problem !== null
      ? {
          waits_for: problem.needs,
          ...(problem.fault === undefined ? {} : { fault: problem.fault }),
          reason: problem.message,
        }
      : state === 'publishing' || state === 'merging'
        ? busyWaits(context, state)
        : state === 'open' && seen !== null
          ? waitsOf(context, seen)
          : {};
  return {
    ...(published === null ? {} : { number: published.number, url: published.url }),
    state,
    ...(seen === null
      ? {}
      : { checks: seen.checks, review: seen.review, mergeable: seen.mergeable }),
    round,
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
