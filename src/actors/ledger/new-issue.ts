import { ServiceError } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';
import type { NewTask } from '../../machines/tracked-task.ts';
import type { Work } from '../store/rows/rows.ts';
import type { Issue, IssueTable } from './issue.ts';

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
  ...(task.externalRef === undefined ? {} : { external_ref: task.externalRef }),
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
