import type { TaskView } from '../../actors/journal/task-view.ts';
import { conflictWords } from '../../machines/conflict-words.ts';
import { plural } from '../../machines/plural.ts';
import type { Client } from '../client/client.ts';
import { readTask } from '../client/task-answers.ts';
import { pullRequestOf } from '../words/state-words.ts';
import { isUnmerged, mergeLine, withDependencies } from '../work/merge-command.ts';

const readAtOnce = 16;

/**
 * Those of the complete tasks whose work is not merged, each after what must be merged before it:
 * the work of an earlier run too.
 */
export const readUnmerged = async (
  client: Client,
  complete: readonly string[],
): Promise<readonly TaskView[]> => {
  const known = new Map<string, TaskView>();
  for (let at = 0; at < complete.length; at += readAtOnce) {
    const ids = complete.slice(at, at + readAtOnce);
    for (const task of await Promise.all(ids.map((id) => readTask(client, id))))
      known.set(task.task_id, task);
  }
  const unmerged = [...known.values()].filter(isUnmerged).map(({ task_id }) => task_id);
  const ordered = await withDependencies(
    unmerged,
    async (id) => known.get(id) ?? readTask(client, id),
  );
  return ordered.filter(isUnmerged);
};

const namedAtMost = 10;

/** Commands to paste that show the work of tasks, and merge it, or how its pull requests stand. */
export const takeWorkLines = (
  all: readonly TaskView[],
  isPublished: (task: TaskView) => boolean = (task) => pullRequestOf(task) !== null,
): readonly string[] => {
  const atForge = all.filter(isPublished);
  const tasks = all.filter((task) => !atForge.includes(task));
  const lines = tasks.length === 0 ? [] : mergeLines(tasks);
  if (atForge.length === 0) return lines;
  const of = `the work of ${plural(atForge.length, 'task')} goes to the forge`;
  return [...lines, '', `${of}; to see how it stands:`, '  agent pr'];
};

const mergeLines = (tasks: readonly TaskView[]): readonly string[] => {
  const more = tasks.length - namedAtMost;
  const refused = tasks.filter(({ work }) => work?.merge?.state === 'refused');
  return [
    '',
    `the work of ${plural(tasks.length, 'task')} is not merged; to see it:`,
    ...tasks.slice(0, namedAtMost).map(({ task_id }) => `  agent diff ${task_id}`),
    ...(more > 0 ? [`  and of ${more} more: agent list shows them`] : []),
    ...tasks.flatMap(({ task_id, work }) =>
      work?.conflicts_with === undefined
        ? []
        : [`${task_id} ${conflictWords(work.conflicts_with)}: agent update goes on after that`],
    ),
    more > 0 ? 'to take it, and all other complete work:' : 'to take it:',
    `  ${mergeLine(tasks, more > 0)}`,
    ...refused
      .slice(0, namedAtMost)
      .flatMap(({ task_id, work }) => [
        `${task_id} was refused: ${work?.merge?.message ?? ''}; to go on with it:`,
        `  agent ${work?.merge?.updatable ? 'update' : 'merge'} ${task_id}`,
      ]),
  ];
};
