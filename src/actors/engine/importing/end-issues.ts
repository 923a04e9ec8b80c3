import { isServiceError } from '../../../machines/errors.ts';
import { sourceOf, statusInTracker, type TrackedTask } from '../../../machines/tracked-task.ts';

import type { Forge, ForgeIssue } from '../../forge/port.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { StatusWrites, TaskFields, TrackerReads, TrackerWrites } from '../../tracker/port.ts';
import { closedMark, goneMark, labelOf, leftMark, markIn, withMark } from './issue-item.ts';

export interface EndPorts {
  readonly tracker: Pick<TrackerReads, 'list'> &
    Pick<TrackerWrites, 'removeDependency'> &
    Pick<StatusWrites, 'close' | 'release'>;
  readonly edit: (taskId: string, fields: TaskFields) => Promise<TaskView>;
  readonly status: (taskId: string) => Promise<TaskView>;
  readonly cancel: (taskId: string, reason: string) => Promise<unknown>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Each costs a request. */
const asksAtMost = 100;

/** The tasks of a source that are not over, and follow it. */
const followers = (
  all: readonly TrackedTask[],
  repository: string,
  labels: readonly string[],
): readonly (readonly [number: number, task: TrackedTask])[] => {
  const wanted = labels.map(labelOf);
  const page = `/${repository}/issues/`.toLowerCase();
  return all.flatMap((task) => {
    const source = sourceOf(task.externalRef);
    if (source === null || !source.url.toLowerCase().includes(page)) return [];
    const isOurs = wanted.every((label) => task.labels.includes(label));
    const isOver = task.status === 'closed' || statusInTracker(task) === 'cancelled';
    const mark = markIn(task.description);
    const isLeft = mark === goneMark || mark === leftMark;
    return isOurs && !isOver && !isLeft ? [[source.number, task] as const] : [];
  });
};

/** Ends the tasks of issues that left the list: closed, without a label, or gone. */
export const createEndIssues = ({ tracker, edit, status, cancel, log }: EndPorts) => {
  const mark = async ({ id, description }: TrackedTask, as: string): Promise<void> => {
    const marked = withMark(description, as);
    if (marked !== null && marked !== description) await edit(id, { description: marked });
  };

  const end = async (task: TrackedTask, { state, url }: ForgeIssue): Promise<void> => {
    // First the mark: with it, an issue that is opened again opens the task.
    await mark(task, closedMark);
    const { id, unmet } = task;
    if (state === 'done') {
      for (const on of unmet) await tracker.removeDependency(id, on);
      const { refusal } = await tracker.close(id, `its issue was closed as done: ${url}`);
      if (refusal !== null) log('the task of a closed issue stays open', { task: id, refusal });
      return;
    }
    await cancel(id, `its issue was closed as not planned: ${url}`).catch((error: unknown) => {
      if (!isServiceError(error) || error.code !== 'event_not_allowed') throw error;
    });
    // Nobody runs it: only the tracker has to know.
    const after = (await status(id)).status;
    if (after === 'queued' || after === 'failed') await tracker.release(id, 'agent-cancelled');
  };

  /** @returns how many left, or were ended */
  return async (
    forge: Forge,
    repository: string,
    labels: readonly string[],
    open: readonly ForgeIssue[],
    signal: AbortSignal,
  ): Promise<number> => {
    const listed = new Set(open.map(({ number }) => number));
    const left = followers(await tracker.list(), repository, labels).filter(
      ([number]) => !listed.has(number),
    );
    let ended = 0;
    for (const [number, task] of left.slice(0, asksAtMost)) {
      const issue = await forge.issue(number, signal);
      const isListed =
        issue?.state === 'open' && labels.every((each) => issue.labels.includes(each));
      if (isListed) continue;
      ended += 1;
      if (issue === null) await mark(task, goneMark);
      else if (issue.state === 'open') await mark(task, leftMark);
      else await end(task, issue);
      const how =
        issue === null ? 'is gone' : issue.state === 'open' ? 'lost a label' : issue.state;
      log('an issue left its source', { task: task.id, issue: number, how });
    }
    return ended;
  };
};
