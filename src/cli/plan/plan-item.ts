import { createHash } from 'node:crypto';
import { requireValidTask } from '../../actors/ledger/issue.ts';
import { isServiceError, type ServiceError } from '../../machines/errors.ts';
import { roleLabel } from '../../machines/role-label.ts';
import { parseTaskId, roles } from '../../machines/task.ts';

/** An item of a file, as it was read. */
export interface PlanItem {
  readonly line: number;
  /** The headings and items above it, from the top. */
  readonly path: readonly string[];
  readonly title: string;
  readonly description: string;
  readonly priority?: number;
  readonly labels: readonly string[];
  readonly role?: string;
  /** Lines of other items, their titles, or ids of tasks. */
  readonly dependsOn: readonly (number | string)[];
}

export interface PlanProblem {
  readonly line: number;
  readonly problem: string;
}

export interface ReadPlan {
  readonly items: readonly PlanItem[];
  readonly problems: readonly PlanProblem[];
  /** Items of a checklist that are done. */
  readonly done: number;
}

export interface PlannedTask {
  readonly ref: string;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly priority: number;
  readonly labels: readonly string[];
  readonly depends_on: readonly string[];
}

const itemsAtMost = 1_000;
const usualPriority = 2;

/** The name of the file, and where the item stands in it. */
const refOf = (file: string, { path, title }: PlanItem): string => {
  const place = JSON.stringify([file, ...path, title]);
  return `plan:${createHash('sha256').update(place).digest('hex').slice(0, 20)}`;
};

const nameOfLine = (line: number): string => `line ${line}`;

const fieldProblems = (item: PlanItem, labels: readonly string[]): readonly string[] => {
  const { title, description, priority = usualPriority } = item;
  try {
    requireValidTask({ title, description, priority, labels, dependencies: [] });
    return [];
  } catch (error) {
    if (!isServiceError(error) || error.code !== 'invalid_params') throw error;
    const { fields } = (error as ServiceError<'invalid_params'>).facts;
    return fields.map(({ path, problem }) => {
      const [field = '', index] = path.split('.');
      return index === undefined
        ? `${field} ${problem}`
        : `label ${JSON.stringify(labels[Number(index)])}: ${problem}`;
    });
  }
};

/** The tasks that a file plans, or all that is wrong with it. */
export const tasksOf = (
  file: string,
  { items, problems: unread }: ReadPlan,
): { readonly tasks: readonly PlannedTask[]; readonly problems: readonly PlanProblem[] } => {
  const problems = [...unread];
  const byLine = new Map(items.map((item) => [item.line, item]));
  const byTitle = new Map<string, PlanItem>();
  const byRef = new Map<string, PlanItem>();
  for (const item of items) {
    const ref = refOf(file, item);
    const first = byRef.get(ref);
    if (first !== undefined)
      problems.push({ line: item.line, problem: `the same item as in line ${first.line}` });
    byRef.set(ref, first ?? item);
    byTitle.set(item.title, byTitle.get(item.title) ?? item);
  }
  if (items.length > itemsAtMost)
    problems.push({
      line: items[itemsAtMost]?.line ?? 1,
      problem: `has more than ${itemsAtMost} items: split the file`,
    });
  const tasks = items.map((item): PlannedTask => {
    const { line, title, priority = usualPriority, role } = item;
    const fault = (problem: string): void => void problems.push({ line, problem });
    const labels = [...item.labels, ...(role === undefined ? [] : [roleLabel(role)])];
    for (const problem of fieldProblems(item, labels)) fault(problem);
    if (role !== undefined && !(roles as readonly string[]).includes(role))
      fault(`role ${JSON.stringify(role)} is none of: ${roles.join(', ')}`);
    const depends_on = item.dependsOn.flatMap((on) => {
      const other = typeof on === 'number' ? byLine.get(on) : byTitle.get(on);
      if (other !== undefined) return refOf(file, other);
      if (parseTaskId(String(on)) !== null) return String(on);
      fault(`depends on ${JSON.stringify(on)}, which is no title in this file and no id of a task`);
      return [];
    });
    const description = item.description.trim() || title;
    return {
      ref: refOf(file, item),
      name: nameOfLine(line),
      title,
      description,
      priority,
      labels,
      depends_on,
    };
  });
  return { tasks, problems: problems.toSorted((one, other) => one.line - other.line) };
};
