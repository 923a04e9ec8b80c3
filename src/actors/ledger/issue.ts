import { z } from 'zod';
import { ServiceError } from '../../machines/errors.ts';
import { parseTaskId, type TaskId } from '../../machines/task.ts';
import type { NewTask, TrackedTask } from '../../machines/tracked-task.ts';
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
export const isGating = ({ type }: { readonly type?: string | null }): boolean =>
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

const titleBytesAtMost = 500;
const descriptionBytesAtMost = 64 * 1024;
const labelPattern = /^[A-Za-z0-9][A-Za-z0-9:_./-]*$/;

const fieldProblems = ({ title, description, priority, labels }: NewTask) => [
  ...(title.trim() === '' ? [{ path: 'title', problem: 'is empty' }] : []),
  ...(Buffer.byteLength(title) > titleBytesAtMost
    ? [{ path: 'title', problem: `is longer than ${titleBytesAtMost} bytes` }]
    : []),
  ...(/[\r\n]/.test(title) ? [{ path: 'title', problem: 'is more than one line' }] : []),
  ...(Buffer.byteLength(description) > descriptionBytesAtMost
    ? [{ path: 'description', problem: `is longer than ${descriptionBytesAtMost} bytes` }]
    : []),
  ...Object.entries({ title, description }).flatMap(([path, text]) =>
    text.includes('\0') ? [{ path, problem: 'holds a NUL character' }] : [],
  ),
  ...(Number.isInteger(priority) && priority >= 0 && priority <= 4
    ? []
    : [{ path: 'priority', problem: 'expected 0 (first) to 4' }]),
  ...labels.flatMap((label, index) =>
    labelPattern.test(label)
      ? []
      : [{ path: `labels.${index}`, problem: 'expected letters, digits and : _ . / -' }],
  ),
];

/** @throws invalid_params with the path of each field that a bd issue cannot hold */
export const requireValidTask = (task: NewTask): void => {
  const fields = fieldProblems(task);
  if (fields.length > 0) throw new ServiceError('invalid_params', { fields });
};

/** As `requireValidTask`, for the fields that are given. */
export const requireValidFields = (fields: Partial<NewTask>): void =>
  requireValidTask({
    title: '-',
    description: '',
    priority: 0,
    labels: [],
    dependencies: [],
    ...fields,
  });

const idLength = (count: number): number => (count < 500 ? 4 : count < 1_500 ? 5 : 6);

/** An id has 128 characters at most. */
const prefixLengthAtMost = 100;

/** The text before the last hyphen that most of the ids share; the first of two such. */
const prefixOf = (ids: readonly string[]): string => {
  const counts = new Map<string, number>();
  for (const id of ids) {
    const prefix = id.slice(0, id.lastIndexOf('-'));
    counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
  }
  const [most] = [...counts]
    .filter(([prefix]) => prefix.length <= prefixLengthAtMost)
    .sort(([, one], [, other]) => other - one);
  return most?.[0] ?? 'bd';
};

/**
 * A new id in bd's form, with the prefix of the project: longer as that grows, never one that exists.
 */
export const createId = function* (
  issues: IssueTable,
  random: (max: number) => number,
): Work<TaskId> {
  for (;;) {
    const { size, ids } = yield* issues.newest();
    const length = idLength(size);
    const digits = Array.from({ length }, () => random(36).toString(36));
    const id = `${prefixOf(ids)}-${digits.join('')}` as TaskId;
    if (!(yield* issues.has(id))) return id;
  }
};

export const createIssue = (id: TaskId, task: NewTask, actor: string, now: string): Issue => ({
  id,
  title: task.title,
  ...(task.description === '' ? {} : { description: task.description }),
  status: 'open',
  priority: task.priority,
  issue_type: 'task',
  created_at: now,
  created_by: actor,
  updated_at: now,
  external_ref: task.externalRef,
  ...(task.labels.length === 0 ? {} : { labels: [...new Set(task.labels)] }),
  ...(task.dependencies.length === 0
    ? {}
    : {
        dependencies: [...new Set(task.dependencies)].map((target) =>
          blockingDependency(id, target, actor, now),
        ),
      }),
});

export const blockingDependency = (from: TaskId, to: TaskId, actor: string, now: string) => ({
  issue_id: from,
  depends_on_id: to,
  type: 'blocks',
  created_at: now,
  created_by: actor,
});
