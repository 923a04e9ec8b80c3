import type { Tasks, TaskView } from '../data/tasks.ts';
import { type Column, lookOf, needsYou, sinceOf } from './state.ts';

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

const isOver = ({ status }: TaskView): boolean => status === 'complete' || status === 'cancelled';

/** For each task the open tasks that wait for it directly. */
const dependentsOf = (all: Tasks): ReadonlyMap<string, readonly string[]> => {
  const found = new Map<string, string[]>();
  for (const task of all.values()) {
    if (isOver(task)) continue;
    for (const id of task.unmet_dependencies) {
      const known = found.get(id);
      if (known === undefined) found.set(id, [task.task_id]);
      else known.push(task.task_id);
    }
  }
  return found;
};

/** How many open tasks wait behind each of these, directly or not. */
export const heldUpBy = (ids: readonly string[], all: Tasks): ReadonlyMap<string, number> => {
  const dependents = dependentsOf(all);
  const countBehind = (id: string): number => {
    const seen = new Set<string>([id]);
    const next = [id];
    for (let one = next.pop(); one !== undefined; one = next.pop())
      for (const dependent of dependents.get(one) ?? [])
        if (!seen.has(dependent)) {
          seen.add(dependent);
          next.push(dependent);
        }
    return seen.size - 1;
  };
  return new Map(ids.map((id) => [id, countBehind(id)]));
};

/**
 * What needs a person: what an agent or a workflow waits for, then what is over. In each, what holds
 * up most comes first, then what waits longest.
 */
export const needing = (all: Tasks): readonly TaskView[] => {
  const found = [...all.values()].filter(needsYou);
  const held = heldUpBy(
    found.map(({ task_id }) => task_id),
    all,
  );
  // The rest of a workflow, which waits for its step of a person, has no tasks yet.
  const heldBy = ({ task_id, phase }: TaskView): number =>
    (held.get(task_id) ?? 0) + (phase === 'waiting_for_person' ? 1 : 0);
  const isEnded = ({ status }: TaskView): number =>
    Number(status === 'failed' || status === 'complete');
  return found.sort(
    (one, other) =>
      isEnded(one) - isEnded(other) || heldBy(other) - heldBy(one) || sinceOf(one) - sinceOf(other),
  );
};

const newestFirst = (one: TaskView, other: TaskView): number =>
  compare(other.updated_at, one.updated_at);
const urgentFirst = (one: TaskView, other: TaskView): number =>
  one.priority - other.priority || compare(one.created_at, other.created_at);

/** The tasks of each column of the board, in order. */
export const columnsOf = (all: Tasks): Readonly<Record<Column, readonly TaskView[]>> => {
  const found: Record<Column, TaskView[]> = {
    dependency: [],
    slot: [],
    working: [],
    needs: [],
    review: [],
    forge: [],
    done: [],
  };
  for (const task of all.values()) found[lookOf(task).column].push(task);
  const rank = new Map(needing(all).map(({ task_id }, index) => [task_id, index]));
  const byRank = (one: TaskView, other: TaskView): number =>
    (rank.get(one.task_id) ?? 0) - (rank.get(other.task_id) ?? 0);
  found.dependency.sort(urgentFirst);
  found.slot.sort(urgentFirst);
  found.working.sort(urgentFirst);
  found.needs.sort(byRank);
  found.review.sort(byRank);
  found.forge.sort(newestFirst);
  found.done.sort(newestFirst);
  return found;
};

const groupsAtMost = 12;

const addTo = (groups: Map<string, TaskView[]>, name: string, task: TaskView): void => {
  const known = groups.get(name);
  if (known === undefined) groups.set(name, [task]);
  else known.push(task);
};

/** The tasks by role or by label, largest groups first, those without one last. */
export const groupsOf = (
  all: readonly TaskView[],
  by: 'role' | 'label',
): readonly (readonly [name: string, tasks: readonly TaskView[]])[] => {
  const groups = new Map<string, TaskView[]>();
  const none: TaskView[] = [];
  for (const task of all) {
    const own = task.role === undefined ? [] : [task.role];
    const names = by === 'role' ? own : task.labels.filter((label) => !label.startsWith('role:'));
    if (names.length === 0) none.push(task);
    for (const name of new Set(names)) addTo(groups, name, task);
  }
  const sorted = [...groups].sort(([, one], [, other]) => other.length - one.length);
  const rest = sorted.slice(groupsAtMost).flatMap(([, tasks]) => tasks);
  return [
    ...sorted.slice(0, groupsAtMost),
    ...(rest.length > 0 ? [[`Other ${by}s`, [...new Set(rest)]] as const] : []),
    ...(none.length > 0 ? [[`No ${by}`, none] as const] : []),
  ];
};
