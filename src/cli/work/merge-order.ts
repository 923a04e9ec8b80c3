import type { TaskView } from '../../actors/journal/task-view.ts';

/**
 * The given tasks, each after those that it depends on, also through other tasks. A cycle ends
 * where it began.
 */
export const inDependencyOrder = async (
  ids: readonly string[],
  read: (taskId: string) => Promise<TaskView>,
): Promise<readonly TaskView[]> => {
  const seen = new Set<string>();
  const ordered: TaskView[] = [];
  const visit = async (id: string): Promise<void> => {
    if (seen.has(id)) return;
    seen.add(id);
    const task = await read(id);
    for (const dependency of task.dependencies) await visit(dependency);
    ordered.push(task);
  };
  for (const id of ids) await visit(id);
  const wanted = new Set(ids);
  return ordered.filter(({ task_id }) => wanted.has(task_id));
};

/** True where each task depends on the one before: then each merge is a fast-forward. */
export const isChain = (ordered: readonly TaskView[]): boolean =>
  ordered.every(({ dependencies }, at) => {
    const before = ordered[at - 1];
    return before === undefined || dependencies.includes(before.task_id);
  });

/** `agent merge bd-a1 bd-b2`, with `--squash` where a fast-forward cannot merge all of them. */
export const mergeLine = (ordered: readonly TaskView[]): string =>
  [
    'agent merge',
    ...ordered.map(({ task_id }) => task_id),
    ...(isChain(ordered) ? [] : ['--squash']),
  ].join(' ');
