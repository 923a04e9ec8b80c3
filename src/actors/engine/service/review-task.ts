import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../../../machines/errors.ts';
import { pathOnLine } from '../../../machines/patch-name.ts';
import { type NewComment, type ReviewCommand, reviewedWork } from '../../../machines/review.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { Workspace } from '../../workspace/port.ts';
import { requireId } from '../queries/task-id.ts';
import type { TaskViews } from '../tasks/loaded-tasks.ts';
import type { TaskCommands } from '../tasks/task-commands.ts';
import type { ExecutePorts } from './execute-task.ts';

interface LineRange {
  readonly from: number;
  readonly to: number;
}

/** The lines of each changed file that a patch shows, as they are after the change. */
type ChangedLines = ReadonlyMap<string, readonly LineRange[]>;

const hunkLine = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@/;

/** A file that was removed has no lines. */
export const linesIn = (patch: string): ChangedLines => {
  const found = new Map<string, LineRange[]>();
  let path = '';
  let isHead = true;
  for (const line of patch.split('\n')) {
    if (line.startsWith('diff --git ')) isHead = true;
    const file = isHead && /^(?:\+\+\+|---) /.test(line) ? pathOnLine(line) : null;
    if (file !== null) {
      path = file;
      found.set(path, found.get(path) ?? []);
    }
    const [, first, count = '1'] = hunkLine.exec(line) ?? [];
    if (first === undefined) continue;
    isHead = false;
    const from = Number(first);
    if (Number(count) > 0) found.get(path)?.push({ from, to: from + Number(count) - 1 });
  }
  return found;
};

const rangesAtMost = 20;

const rangesText = (ranges: readonly LineRange[]): string =>
  ranges
    .slice(0, rangesAtMost)
    .map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`))
    .join(', ');

const linesText = (ranges: readonly LineRange[]): string => {
  const [only] = ranges;
  const isOne = ranges.length === 1 && only?.from === only?.to;
  return `${isOne ? 'line' : 'lines'} ${rangesText(ranges)}`;
};

/** Null for a place that a reviewer can mean. A whole file may also be one of the project. */
const commentProblem = (
  { path, line, endLine }: NewComment,
  changed: ChangedLines,
  isInProject: boolean,
  attempt: number,
): { readonly field: 'path' | 'line'; readonly says: string } | null => {
  const ranges = changed.get(path);
  if (ranges === undefined && !isInProject)
    return {
      field: 'path',
      says: `${path} is neither in the changes of attempt ${attempt} nor in the project`,
    };
  // A removed file and an attempt without changes have no lines to name.
  if (line === null || changed.size === 0 || ranges?.length === 0) return null;
  const last = endLine ?? line;
  if (ranges?.some(({ from, to }) => line >= from && last <= to) === true) return null;
  const given = last === line ? `line ${line}` : `lines ${line}-${last}`;
  const shown =
    ranges === undefined
      ? 'they do not touch that file; leave out the line'
      : `they have its ${linesText(ranges)}`;
  return {
    field: 'line',
    says: `${path}: the changes of attempt ${attempt} do not have ${given}; ${shown}`,
  };
};

export type ReviewRequest = Pick<ReviewCommand, 'verdict' | 'attempt' | 'comments' | 'rework'>;

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
    // A forge knows the places of its comments.
    if (comments.every(({ source }) => source !== undefined)) return;
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
      if (review.comments.length + open.length === 0 && review.rework === undefined)
        throw invalid('comments', 'give at least one: the next attempt must know what to change');
      // The configuration may have changed since the last attempt.
      requireNetwork(options);
      await requirePrice(options, role ?? 'engineer');
    }
    return commands.ask(id, { ...review, type: 'review', maxRetries: ports.maxRetries() });
  };
};
