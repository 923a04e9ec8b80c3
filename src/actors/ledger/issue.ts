import { z } from 'zod';
import { parseTaskId, type TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { Work } from '../store/rows/rows.ts';

const expecting = (kind: string) => ({
  error: ({ input }: { readonly input?: unknown }) =>
    input === undefined ? 'is missing' : `is not ${kind}`,
});
const text = z.string(expecting('text'));

const issueDependencySchema = z.looseObject(
  { depends_on_id: text, type: text.nullish() },
  expecting('an object'),
);

/**
 * A line of `.beads/issues.jsonl` in bd's form; what we do not know stays in it, for bd and for
 * other programs.
 */
export const fileIssueSchema = z.looseObject({
  id: text.refine((id) => parseTaskId(id) !== null, 'is not an issue id, such as bd-a1'),
  title: text,
  description: text.optional(),
  status: text.default('open'),
  priority: z.number(expecting('a number')).default(2),
  labels: z.array(text, expecting('a list')).optional(),
  assignee: text.optional(),
  dependencies: z.array(issueDependencySchema, expecting('a list')).optional(),
  created_at: text.optional(),
  updated_at: text.optional(),
  closed_at: text.optional(),
  close_reason: z.unknown().optional(),
  external_ref: z.unknown().optional(),
});
export type Issue = z.infer<typeof fileIssueSchema>;

/** Read access to a project's issues, also during a change. */
export interface IssueTable {
  get(id: string): Work<Issue | undefined>;
  has(id: string): Work<boolean>;
  /** About how many there were ever, and the ids of some, the newest first. */
  newest(): Work<{ readonly size: number; readonly ids: readonly string[] }>;
}

export const endLabels: readonly string[] = ['agent-failed', 'agent-cancelled'];

const gating: ReadonlySet<string> = new Set(['blocks', 'conditional-blocks', 'waits-for']);
/** A dependency without a type blocks. */
export const isGating = ({ type }: { readonly type?: string | null | undefined }): boolean =>
  gating.has(type ?? 'blocks');
const doneStatuses: ReadonlySet<string> = new Set(['closed', 'pinned', 'tombstone']);
/** A task with such a status blocks nobody. */
export const isDone = (status: string): boolean => doneStatuses.has(status);

/** Records that bd and its tools keep among the tasks. `bd ready` leaves them out, too. */
const notWork: ReadonlySet<string> = new Set(
  'agent convoy event gate memory merge-request message molecule rig role slot wisp'.split(' '),
);

interface WorkFields {
  readonly status: string;
  readonly issue_type?: unknown;
  readonly pinned?: unknown;
  readonly ephemeral?: unknown;
  readonly defer_until?: unknown;
}

/**
 * The status for people, who see why nobody works on an open task that is no work, or not yet: the
 * word for that. `now`: epoch ms.
 */
export const shownStatus = (
  { status, issue_type: type, pinned, ephemeral, defer_until: until }: WorkFields,
  now: number,
): string => {
  if (status !== 'open') return status;
  if (typeof type === 'string' && notWork.has(type)) return type;
  if (pinned) return 'pinned';
  if (ephemeral) return 'ephemeral';
  return typeof until === 'string' && Date.parse(until) > now ? 'deferred' : 'open';
};

/** The ids of the tasks that this one is a part of. */
export const parents = ({ dependencies = [] }: Issue): readonly TaskId[] =>
  dependencies.flatMap(({ type, depends_on_id }) => {
    const id = type === 'parent-child' ? parseTaskId(depends_on_id) : null;
    return id === null ? [] : [id];
  });

/** The ids that the issue depends on, by the types that block only. */
export const blockers = ({ dependencies = [] }: Issue): readonly TaskId[] => [
  ...new Set(
    dependencies.flatMap((dependency) => {
      const id = isGating(dependency) ? parseTaskId(dependency.depends_on_id) : null;
      return id === null ? [] : [id];
    }),
  ),
];

export const isoOrEpoch = (text: string): string => {
  const at = Date.parse(text);
  return new Date(Number.isNaN(at) ? 0 : at).toISOString();
};

export const isListed = ({ status }: Issue): boolean => status !== 'tombstone';

const closeReasonOf = ({ close_reason: reason }: Issue): Pick<TrackedTask, 'closeReason'> =>
  typeof reason === 'string' ? { closeReason: reason } : {};

const externalRefOf = ({ external_ref: ref }: Issue): Pick<TrackedTask, 'externalRef'> =>
  typeof ref === 'string' && ref !== '' ? { externalRef: ref } : {};

/**
 * `unmet`: its blockers that are not done, and those of its parents; one that does not exist is never
 * done. `createdAt`: for an issue that does not say it. `now`: epoch ms.
 */
export const trackedFrom = (
  issue: Issue,
  unmet: readonly TaskId[],
  { createdAt, now }: { readonly createdAt: string; readonly now: number },
): TrackedTask => ({
  id: issue.id as TaskId,
  title: issue.title,
  description: issue.description ?? '',
  status: shownStatus(issue, now),
  priority: issue.priority,
  labels: issue.labels ?? [],
  assignee: issue.assignee ?? null,
  dependencies: blockers(issue),
  unmet,
  ready: shownStatus(issue, now) === 'open' && unmet.length === 0,
  createdAt: isoOrEpoch(issue.created_at ?? createdAt),
  updatedAt: isoOrEpoch(issue.updated_at ?? createdAt),
  closedAt: issue.closed_at === undefined ? null : isoOrEpoch(issue.closed_at),
  ...closeReasonOf(issue),
  ...externalRefOf(issue),
});

/**
 * The ids from `from` along dependencies back to `to`, or null: adding `to → from` would close this
 * cycle.
 */
export const pathBetween = function* (
  from: TaskId,
  to: TaskId,
  issues: IssueTable,
): Work<readonly TaskId[] | null> {
  const cameFrom = new Map<TaskId, TaskId | null>([[from, null]]);
  for (const id of cameFrom.keys()) {
    if (id === to) {
      const path: TaskId[] = [];
      for (let at: TaskId | null | undefined = id; at != null; at = cameFrom.get(at))
        path.unshift(at);
      return path;
    }
    const issue = yield* issues.get(id);
    for (const next of issue === undefined ? [] : blockers(issue))
      if (!cameFrom.has(next)) cameFrom.set(next, id);
  }
  return null;
};
