import { z } from 'zod';
import { parseTaskId, type TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import { isGating, shownStatus } from '../../ledger/issue.ts';

/** Both of bd's forms: the record of `list`, or the issue inside `show`. */
const bdDependencySchema = z.looseObject({
  depends_on_id: z.string().optional(),
  type: z.string().optional(),
  id: z.string().optional(),
  dependency_type: z.string().optional(),
  status: z.string().optional(),
});

const bdIssueSchema = z.looseObject({
  id: z.string().refine((id) => parseTaskId(id) !== null, 'is not an issue id'),
  title: z.string(),
  description: z.string().nullish(),
  status: z.string().nullish(),
  priority: z.number().nullish(),
  labels: z.array(z.string()).nullish(),
  assignee: z.string().nullish(),
  parent: z.string().nullish(),
  created_at: z.string(),
  updated_at: z.string().nullish(),
  closed_at: z.string().nullish(),
  close_reason: z.string().nullish(),
  external_ref: z.string().nullish(),
  dependencies: z.array(bdDependencySchema).nullish(),
});

interface Edge {
  readonly to: TaskId;
  readonly type: string | undefined;
  /** The status of the issue at the other end; null when bd does not print it. */
  readonly status: string | null;
}

/** Whether an edge blocks depends on the issue at its end. */
export interface BdIssue extends Omit<TrackedTask, 'dependencies' | 'unmet' | 'ready'> {
  readonly edges: readonly Edge[];
  /** The status for people. */
  readonly shown: string;
}

const endedStatuses: ReadonlySet<string> = new Set(['closed', 'pinned', 'tombstone']);

const time = (text: string | null | undefined): string => {
  const at = Date.parse(text ?? '');
  return new Date(Number.isNaN(at) ? 0 : at).toISOString();
};

const edgesOf = (dependencies: readonly z.infer<typeof bdDependencySchema>[]): readonly Edge[] =>
  dependencies.flatMap(({ depends_on_id, type, id, dependency_type, status }) => {
    const to = parseTaskId(depends_on_id ?? id ?? '');
    return to === null ? [] : [{ to, type: type ?? dependency_type, status: status ?? null }];
  });

const issueFrom = (row: z.infer<typeof bdIssueSchema>): BdIssue => ({
  id: row.id as TaskId,
  title: row.title,
  description: row.description ?? '',
  status: row.status ?? 'open',
  priority: row.priority ?? 2,
  labels: row.labels ?? [],
  assignee: row.assignee || null,
  createdAt: time(row.created_at),
  updatedAt: time(row.updated_at ?? row.created_at),
  closedAt: row.closed_at == null ? null : time(row.closed_at),
  ...(row.close_reason ? { closeReason: row.close_reason } : {}),
  ...(row.external_ref ? { externalRef: row.external_ref } : {}),
  edges: edgesOf(row.dependencies ?? []),
  shown: shownStatus({ ...row, status: row.status ?? 'open' }, Date.now()),
});

/** Reads the issues row by row. A row that cannot be read is reported and left out. */
export const issuesIn = (
  value: unknown,
  onBadRow: (problem: string) => void,
): readonly BdIssue[] => {
  const rows: readonly unknown[] = Array.isArray(value) ? value : value == null ? [] : [value];
  return rows.flatMap((row) => {
    const parsed = bdIssueSchema.safeParse(row);
    if (parsed.success) return [issueFrom(parsed.data)];
    onBadRow(
      parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '),
    );
    return [];
  });
};

/**
 * `blocked_by` by issue, from `bd blocked`. A blocker outside the tracker (`external:…`) is only
 * shown.
 */
export const blockersIn = (value: unknown): ReadonlyMap<string, readonly TaskId[]> => {
  const schema = z.array(
    z.looseObject({ id: z.string(), blocked_by: z.array(z.string()).nullish() }),
  );
  const rows = schema.safeParse(value ?? []).data ?? [];
  return new Map(rows.map(({ id, blocked_by }) => [id, (blocked_by ?? []) as TaskId[]]));
};

const unique = (ids: readonly TaskId[]): readonly TaskId[] => [...new Set(ids)];
const gatingEdges = ({ edges }: BdIssue) => edges.filter(({ type }) => isGating({ type }));

export const blockersOf = (issue: BdIssue): readonly TaskId[] =>
  unique(gatingEdges(issue).map(({ to }) => to));

/** The blockers that are not done, by `show`; one without a status is not done. */
export const unmetIn = (issue: BdIssue): readonly TaskId[] =>
  unique(
    gatingEdges(issue).flatMap(({ to, status }) => (endedStatuses.has(status ?? '') ? [] : [to])),
  );

const withParents = (issue: BdIssue, all: ReadonlyMap<string, BdIssue>): ReadonlySet<BdIssue> => {
  const line = new Set<BdIssue>([issue]);
  for (const each of line)
    for (const { to, type } of each.edges) {
      const parent = type === 'parent-child' ? all.get(to) : undefined;
      if (parent !== undefined && !endedStatuses.has(parent.status)) line.add(parent);
    }
  return line;
};

/**
 * The unmet blockers of an issue in the whole list, with those of its parents that are no parts of
 * these.
 */
export const unmetAmong = (
  issue: BdIssue,
  all: ReadonlyMap<string, BdIssue>,
): readonly TaskId[] => {
  const unmet: TaskId[] = [];
  for (const each of withParents(issue, all))
    for (const id of blockersOf(each)) {
      const blocker = all.get(id);
      const isPart = each !== issue && blocker !== undefined && withParents(blocker, all).has(each);
      if (!isPart && !endedStatuses.has(blocker?.status ?? 'missing')) unmet.push(id);
    }
  return unique(unmet);
};

export const trackedFromBd = (
  issue: BdIssue,
  { unmet, ready }: { readonly unmet: readonly TaskId[]; readonly ready: boolean },
): TrackedTask => {
  const { edges: _, shown: status, ...own } = issue;
  return { ...own, status, dependencies: blockersOf(issue), unmet, ready };
};
