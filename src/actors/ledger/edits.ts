import { type ErrorFacts, type Refusal, refusal } from '../../machines/errors.ts';
import type { EndLabel } from '../../machines/task/task-selectors.ts';
import type { TaskId } from '../../machines/task.ts';
import { holderOf } from '../../machines/tracked-task.ts';
import type { Work } from '../store/rows/rows.ts';
import {
  blockingDependency,
  endLabels,
  type Issue,
  type IssueTable,
  isGating,
  isListed,
  pathBetween,
  shownStatus,
} from './issue.ts';

/** The author and the time of a change. */
export interface Editor {
  readonly actor: string;
  /** RFC 3339; later than the last change of the task. */
  readonly now: string;
}

/** The task as it is then; null when nothing changes. */
export type Edited = Issue | Refusal | null;

export const isRefusal = (edited: Edited): edited is Refusal =>
  edited !== null && 'facts' in edited && 'code' in edited;

const omitKeys = <Key extends string>(issue: Issue, ...keys: readonly Key[]): Issue =>
  Object.fromEntries(
    Object.entries(issue).filter(([key]) => !(keys as readonly string[]).includes(key)),
  ) as Issue;

const withLabels = (issue: Issue, labels: readonly string[]): Issue =>
  labels.length === 0 ? omitKeys(issue, 'labels') : { ...issue, labels: [...labels] };

const keptLabels = ({ labels = [] }: Issue): readonly string[] =>
  labels.filter((label) => !endLabels.includes(label));

const unmetRefusal = ({ id }: Issue, unmet: readonly TaskId[]): Refusal | null =>
  unmet.length === 0 ? null : refusal('dependencies_unmet', { task_id: id as TaskId, unmet });

/** As `StatusWrites.claim`. `unmet`: its blockers that are not done. */
export const claimed = (issue: Issue, unmet: readonly TaskId[], { actor, now }: Editor): Edited => {
  if (issue.status === 'in_progress' && issue.assignee === actor) return null;
  const status = shownStatus(issue, Date.parse(now));
  const holder = holderOf({ status, assignee: issue.assignee ?? null }, actor);
  if (holder !== null) return refusal('tracker_conflict', { task_id: issue.id as TaskId, holder });
  return (
    unmetRefusal(issue, unmet) ??
    withLabels({ ...issue, status: 'in_progress', assignee: actor }, keptLabels(issue))
  );
};

/** As `StatusWrites.release`. */
export const released = (issue: Issue, label: EndLabel, { actor }: Editor): Edited => {
  const isTheirs = issue.assignee !== undefined && issue.assignee !== actor;
  if (isTheirs || !['open', 'in_progress'].includes(issue.status)) return null;
  const labels = [...keptLabels(issue), ...(label === null ? [] : [label])];
  return withLabels({ ...omitKeys(issue, 'assignee'), status: 'open' }, labels);
};

/** As `StatusWrites.close`. */
export const closed = (
  issue: Issue,
  unmet: readonly TaskId[],
  reason: string,
  { now }: Editor,
): Edited => {
  if (issue.status === 'closed') return null;
  return (
    unmetRefusal(issue, unmet) ??
    withLabels(
      { ...issue, status: 'closed', closed_at: now, close_reason: reason },
      keptLabels(issue),
    )
  );
};

/** As `StatusWrites.reopen`. */
export const reopened = (issue: Issue): Edited => {
  const open = omitKeys(issue, 'closed_at', 'close_reason', 'assignee');
  return withLabels({ ...open, status: 'open' }, keptLabels(issue));
};

/** As `TrackerWrites.addDependency`. */
export const withDependency = function* (
  issue: Issue,
  on: TaskId,
  issues: IssueTable,
  { actor, now }: Editor,
): Work<Edited> {
  const id = issue.id as TaskId;
  const target = yield* issues.get(on);
  if (target === undefined || !isListed(target)) return refusal('task_not_found', { task_id: on });
  const cycle = yield* pathBetween(on, id, issues);
  if (cycle !== null) return refusal('dependency_cycle', { cycle: [id, ...cycle] });
  const { dependencies = [] } = issue;
  if (dependencies.some(({ depends_on_id, type }) => depends_on_id === on && type === 'blocks'))
    return null;
  return { ...issue, dependencies: [...dependencies, blockingDependency(id, on, actor, now)] };
};

/** As `TrackerWrites.removeDependency`: links of other types stay. */
export const withoutDependency = (issue: Issue, on: TaskId): Edited => {
  const { dependencies = [] } = issue;
  const kept = dependencies.filter((edge) => edge.depends_on_id !== on || !isGating(edge));
  if (kept.length === dependencies.length) return null;
  return kept.length === 0 ? omitKeys(issue, 'dependencies') : { ...issue, dependencies: kept };
};

/** As `TrackerWrites.edit`. */
export const withFields = (
  issue: Issue,
  { labels, ...fields }: { readonly labels?: readonly string[] },
): Edited => {
  const ends = issue.labels?.filter((label) => endLabels.includes(label)) ?? [];
  const edited = { ...issue, ...fields };
  return labels === undefined ? edited : withLabels(edited, [...new Set([...labels, ...ends])]);
};

/** Why a task that others depend on cannot be removed; null when none do. */
export const neededBy = (
  id: TaskId,
  dependents: readonly TaskId[],
): ErrorFacts['event_not_allowed'] | null =>
  dependents.length === 0
    ? null
    : {
        task_id: id,
        event: 'delete',
        state: `needed by ${dependents.slice(0, 10).join(', ')}`,
        allowed: ['dep remove'],
      };

/** As `TrackerWrites.remove`. bd of that time kept deleted tasks as tombstones, too. */
export const removedIssue = (
  issue: Issue,
  dependents: readonly TaskId[],
  { actor, now }: Editor,
): Edited => {
  const needed = neededBy(issue.id as TaskId, dependents);
  if (needed !== null) return refusal('event_not_allowed', needed);
  return { ...issue, status: 'tombstone', deleted_at: now, deleted_by: actor };
};

/** As `TrackerWrites.note`. */
export const withComment = (issue: Issue, text: string, { actor, now }: Editor): Edited => {
  const before = Array.isArray(issue['comments']) ? issue['comments'] : [];
  // A number: bd 0.49 cannot import a comment whose id is text.
  const comment = {
    id: before.length + 1,
    issue_id: issue.id,
    author: actor,
    text,
    created_at: now,
  };
  return { ...issue, comments: [...before, comment] };
};
