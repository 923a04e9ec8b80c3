import type { TaskView } from '../../actors/journal/task-view.ts';
import { CallError } from '../client/client.ts';
import { mergeWord } from '../words/state-words.ts';

/** Complete work that a merge would take. */
export const isUnmerged = ({ status, work }: TaskView): boolean =>
  status === 'complete' && mergeWord(work) === 'not merged';

/** Null for a dependency that is gone: an edited file may name one. */
const readDependency = async (
  id: string,
  read: (taskId: string) => Promise<TaskView>,
): Promise<TaskView | null> => {
  try {
    return await read(id);
  } catch (error) {
    if (error instanceof CallError && error.code === 'task_not_found') return null;
    throw error;
  }
};

/**
 * The given tasks and all that they depend on, each after those that it depends on. A cycle ends
 * where it began. @throws CallError for a given task that is not there
 */
export const withDependencies = async (
  ids: readonly string[],
  read: (taskId: string) => Promise<TaskView>,
): Promise<readonly TaskView[]> => {
  const wanted = new Set(ids);
  const seen = new Set<string>();
  const ordered: TaskView[] = [];
  const visit = async (id: string): Promise<void> => {
    if (seen.has(id)) return;
    seen.add(id);
    const task = await (wanted.has(id) ? read(id) : readDependency(id, read));
    if (task === null) return;
    for (const dependency of task.dependencies) await visit(dependency);
    ordered.push(task);
  };
  for (const id of ids) await visit(id);
  return ordered;
};

/** The given tasks alone, in the order of `withDependencies`. */
export const inDependencyOrder = async (
  ids: readonly string[],
  read: (taskId: string) => Promise<TaskView>,
): Promise<readonly TaskView[]> => {
  const wanted = new Set(ids);
  if (wanted.size === 1) return Promise.all([...wanted].map(read));
  return (await withDependencies(ids, read)).filter(({ task_id }) => wanted.has(task_id));
};

/** True where each task depends on the one before: then each merge is a fast-forward. */
export const isChain = (ordered: readonly TaskView[]): boolean =>
  ordered.every(({ dependencies }, at) => {
    const before = ordered[at - 1];
    return before === undefined || dependencies.includes(before.task_id);
  });

/** `agent merge bd-a1 bd-b2`, with `--squash` where a fast-forward cannot merge all of them. */
export const mergeLine = (ordered: readonly TaskView[], isAll = false): string =>
  [
    'agent merge',
    ...(isAll ? ['--all'] : ordered.map(({ task_id }) => task_id)),
    ...(isChain(ordered) ? [] : ['--squash']),
  ].join(' ');
