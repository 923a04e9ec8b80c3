import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../../machines/errors.ts';
import { type NewComment, type ReviewCommand, reviewedWork } from '../../machines/review.ts';
import type { TaskId } from '../../machines/task.ts';
import type { TaskView } from '../journal/task-view.ts';
import type { Workspace } from '../workspace/port.ts';
import type { ExecutePorts } from './execute-task.ts';
import { commentProblem, linesIn } from './review-places.ts';
import type { TaskCommands } from './task-commands.ts';
import { requireId } from './task-id.ts';
import type { TaskViews } from './task-views.ts';

export type ReviewRequest = Pick<ReviewCommand, 'verdict' | 'attempt' | 'comments'>;

export interface TaskReviews {
  /**
   * Keeps a person's comments on the work of an attempt; when changes are requested, the next attempt
   * goes on with its branch. @throws task_not_found, event_not_allowed, invalid_params
   */
  review(taskId: string, review: ReviewRequest): Promise<TaskView>;
}

interface ReviewPorts extends Pick<ExecutePorts, 'requireNetwork' | 'requirePrice' | 'maxRetries'> {
  readonly commands: Pick<TaskCommands, 'ask'>;
  readonly views: Pick<TaskViews, 'snapshotOf'>;
  readonly workspace: Pick<Workspace, 'diff'>;
  readonly projectRoot: () => string;
}

const invalid = (path: string, problem: string): ServiceError =>
  new ServiceError('invalid_params', { fields: [{ path, problem }] });

export const createReview = (ports: ReviewPorts): TaskReviews['review'] => {
  const { commands, views, workspace, requireNetwork, requirePrice } = ports;

  /** A wrong path would start an attempt that has nothing to change. */
  const requirePlaces = async (
    id: TaskId,
    attempt: number,
    comments: readonly NewComment[],
  ): Promise<void> => {
    if (comments.length === 0) return;
    const patch = (await workspace.diff(id, attempt).catch(() => null))?.patch ?? '';
    const changed = linesIn(patch);
    const isInProject = (path: string): boolean => existsSync(join(ports.projectRoot(), path));
    for (const [at, comment] of comments.entries()) {
      const problem = commentProblem(comment, changed, isInProject(comment.path), attempt);
      if (problem !== null) throw invalid(`comments.${at}.${problem.field}`, problem.says);
    }
  };

  return async (taskId, review) => {
    const id = requireId(taskId);
    const { options, role, attempt, review: earlier } = (await views.snapshotOf(id)).context;
    if (attempt > 0) await requirePlaces(id, review.attempt ?? attempt, review.comments);
    if (review.verdict === 'request_changes') {
      const open = reviewedWork(earlier).review?.comments ?? [];
      if (review.comments.length + open.length === 0)
        throw invalid('comments', 'give at least one: the next attempt must know what to change');
      // The configuration may have changed since the last attempt.
      requireNetwork(options);
      await requirePrice(options, role ?? 'engineer');
    }
    return commands.ask(id, { ...review, type: 'review', maxRetries: ports.maxRetries() });
  };
};
