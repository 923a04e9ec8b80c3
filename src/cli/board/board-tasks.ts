import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Client, Frame } from '../client/client.ts';
import type { Progress, TaskProgress } from '../graph/progress.ts';
import type { Io } from '../output/io.ts';
import { fetchTasks } from '../tasks/fetch-tasks.ts';
import type { Board } from './render-board.ts';
import { sectionOf, sections } from './sections.ts';
import type { BoardTask } from './why.ts';

/** The newest tasks, beside all that run or wait for a slot. */
const boardTasksAtMost = 5_000;

/** The tasks of the board, as the list and the stream tell of them. */
export interface BoardTasks {
  see(frame: Frame): void;
  /** Reads the list again: no frame tells of a task that nobody ran yet. */
  load(io: Io): Promise<void>;
  ids(): readonly string[];
  board(): Board;
}

/** Newer sign of life first among those of equal urgency. */
const order = (one: BoardTask, other: BoardTask): number =>
  sections.indexOf(one.section) - sections.indexOf(other.section) ||
  // A question holds up an agent now.
  Number(one.task.view.status === 'failed') - Number(other.task.view.status === 'failed') ||
  (one.section === 'done' || one.section === 'review'
    ? other.task.seenAt - one.task.seenAt
    : one.task.view.created_at.localeCompare(other.task.view.created_at));

const workKey = ({ task_id, attempt }: TaskView): string => `${task_id} ${attempt}`;

export const createBoardTasks = (client: Client, progress: Progress): BoardTasks => {
  const ids = new Set<string>();
  /** By attempt: one that follows a merge has work of its own. */
  const works = new Map<string, TaskView['work']>();
  let unread = 0;
  const take = (view: TaskView): void => {
    const known = progress.get(view.task_id);
    if (known === null) progress.begin(view);
    else progress.refresh(view);
    ids.add(view.task_id);
    if (view.status === 'complete') works.set(workKey(view), view.work);
  };
  const tasks = (): readonly TaskProgress[] => [...ids].flatMap((id) => progress.get(id) ?? []);
  const placed = (task: TaskProgress): BoardTask => {
    const work = works.get(workKey(task.view));
    return { task, work, section: sectionOf(task.view, work) };
  };
  const find = (taskId: string): BoardTask | null => {
    const task = progress.get(taskId);
    return task === null ? null : placed(task);
  };
  return {
    see: (frame) => {
      progress.take(frame);
      if (progress.get(frame.task_id) !== null) ids.add(frame.task_id);
    },
    load: async (io) => {
      const active = await fetchTasks(client, io, { status: 'active' }, null);
      const newest = await fetchTasks(client, io, {}, boardTasksAtMost);
      for (const view of [...newest.tasks, ...active.tasks]) take(view);
      // A task that was deleted is in neither list.
      const listed = new Set([...newest.tasks, ...active.tasks].map(({ task_id }) => task_id));
      if (newest.more === 0) for (const id of ids) if (!listed.has(id)) ids.delete(id);
      unread = newest.more ?? 0;
    },
    ids: () => [...ids],
    board: () => ({ tasks: tasks().map(placed).toSorted(order), find, unread }),
  };
};
