import {
  emptyList,
  type SortedList,
  withItem,
  withoutItem,
} from '../../../machines/supervisor/sorted-list.ts';
import { comparePlaces } from '../../../machines/supervisor/waiting-queue.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import type { TrackerReads } from '../../tracker/port.ts';

type Cycle = readonly string[];

/** A task with its open dependencies. */
interface Linked {
  readonly id: string;
  readonly unmet: readonly string[];
}

export interface OrderedTasks<Task extends Linked> {
  /** Tasks in generations: each after all that it depends on. */
  readonly generations: readonly (readonly Task[])[];
  /** Tasks on a cycle, or behind one. */
  readonly cyclic: readonly { readonly task: Task; readonly cycle: Cycle }[];
}

type Graph<Task extends Linked = Linked> = ReadonlyMap<string, Task>;

const dependenciesIn = (graph: Graph, { unmet }: Linked): readonly string[] =>
  unmet.filter((id) => graph.has(id));

const dependentsOf = (graph: Graph): ReadonlyMap<string, readonly string[]> => {
  const dependents = new Map<string, string[]>();
  for (const task of graph.values())
    for (const id of dependenciesIn(graph, task)) {
      const known = dependents.get(id);
      if (known === undefined) dependents.set(id, [task.id]);
      else known.push(task.id);
    }
  return dependents;
};

/** Each task of `graph` depends on another one of it, so every walk ends in a cycle. */
const cyclesOf = (graph: Graph): ReadonlyMap<string, Cycle> => {
  const cycles = new Map<string, Cycle>();
  for (const start of graph.values()) {
    const path = new Set<string>();
    let task: Linked | undefined = start;
    while (task !== undefined && !path.has(task.id) && !cycles.has(task.id)) {
      path.add(task.id);
      const [next] = dependenciesIn(graph, task);
      task = next === undefined ? undefined : graph.get(next);
    }
    if (task === undefined) continue;
    const steps = [...path];
    const cycle = cycles.get(task.id) ?? [...steps.slice(steps.indexOf(task.id)), task.id];
    for (const id of steps) cycles.set(id, cycle);
  }
  return cycles;
};

/** Orders tasks by their open dependencies; time and memory grow with tasks and dependencies. */
export const orderTasks = <Task extends Linked>(tasks: readonly Task[]): OrderedTasks<Task> => {
  const graph: Graph<Task> = new Map(tasks.map((task) => [task.id, task]));
  const dependents = dependentsOf(graph);
  const left = new Map(
    [...graph.values()].map((task) => [task.id, dependenciesIn(graph, task).length]),
  );
  const generations: Task[][] = [];
  let next = [...graph.values()].filter(({ id }) => left.get(id) === 0);
  while (next.length > 0) {
    generations.push(next);
    const freed: Task[] = [];
    for (const { id } of next) {
      left.delete(id);
      for (const dependent of dependents.get(id) ?? []) {
        const count = (left.get(dependent) ?? 0) - 1;
        left.set(dependent, count);
        const task = graph.get(dependent);
        if (count === 0 && task !== undefined) freed.push(task);
      }
    }
    next = freed;
  }
  const rest: Graph<Task> = new Map([...graph].filter(([id]) => left.has(id)));
  const cycles = cyclesOf(rest);
  return {
    generations,
    cyclic: [...rest.values()].map((task) => ({ task, cycle: cycles.get(task.id) ?? [] })),
  };
};

/** Tasks without cycles as they get slots, one at a time: by the order of the queue. */
export const startOrder = (tasks: readonly TrackedTask[]): readonly TrackedTask[] => {
  const graph: Graph<TrackedTask> = new Map(tasks.map((task) => [task.id, task]));
  const numbers = new Map(tasks.map(({ id }, number) => [id as string, number]));
  const waits = new Map(tasks.map((task) => [task.id, dependenciesIn(graph, task).length]));
  const dependents = dependentsOf(graph);
  const compare = (one: TrackedTask, other: TrackedTask): number =>
    comparePlaces(placeOf(one), placeOf(other));
  const placeOf = (task: TrackedTask) => ({
    request: { priority: task.priority, submittedAt: 0 },
    number: numbers.get(task.id) ?? 0,
  });
  let ready: SortedList<TrackedTask> = emptyList;
  for (const task of tasks) if (waits.get(task.id) === 0) ready = withItem(ready, task, compare);
  const ordered: TrackedTask[] = [];
  const release = (done: TrackedTask | undefined): void => {
    for (const id of (done && dependents.get(done.id)) ?? []) {
      const task = graph.get(id);
      if (task === undefined) continue;
      const left = (waits.get(task.id) ?? 0) - 1;
      waits.set(task.id, left);
      if (left === 0) ready = withItem(ready, task, compare);
    }
  };
  // A slot goes to the next that waits; then the dependents of the one before join the queue.
  for (let last: TrackedTask | undefined; ordered.length < tasks.length; ) {
    if (ready.length === 0) {
      release(last);
      last = undefined;
    }
    const next = ready.parts[0]?.[0];
    if (next === undefined) break;
    ready = withoutItem(ready, next, compare);
    ordered.push(next);
    release(last);
    last = next;
  }
  return ordered;
};

const cycleText = (cycle: Cycle): string =>
  `${cycle.join(' -> ')}; remove one of them with: agent dep remove ${cycle.slice(0, 2).join(' ')}`;

export const cycleReason = (id: string, cycle: Cycle): string =>
  cycle.includes(id)
    ? `its dependencies form a cycle: ${cycleText(cycle)}`
    : `it waits for a cycle of dependencies: ${cycleText(cycle)}`;

/** One sentence for each cycle among the tasks. */
export const cyclesAmong = (tasks: readonly Linked[]): readonly string[] =>
  [...new Set(orderTasks(tasks).cyclic.map(({ cycle }) => cycle))].map(
    (cycle) => `dependencies form a cycle: ${cycleText(cycle)}`,
  );

const pageSize = 1_000;
const openStatuses = ['queued', 'started', 'failed', 'cancelled'] as const;

/** Every task that is not complete. */
export const openTasks = async (
  tracker: Pick<TrackerReads, 'page'>,
): Promise<readonly TrackedTask[]> => {
  const found: TrackedTask[] = [];
  for (const status of openStatuses) {
    let after: TrackedTask | undefined;
    do {
      const page = await tracker.page({
        status,
        limit: pageSize,
        after,
      });
      found.push(...page);
      after = page.length === pageSize ? page.at(-1) : undefined;
    } while (after !== undefined);
  }
  return found;
};

/** A chain is as many reads as it has tasks; after these, all open tasks are read at once. */
const readsInChain = 50;

/** The tasks that are found, and all that they wait for. */
export const withDependencies = async (
  tracker: Pick<TrackerReads, 'findMany' | 'page'>,
  ids: readonly TaskId[],
): Promise<ReadonlyMap<TaskId, TrackedTask>> => {
  const found = new Map<TaskId, TrackedTask>();
  const asked = new Set<TaskId>();
  let open = new Map<TaskId, TrackedTask>();
  let next = [...new Set(ids)];
  for (let reads = 1; next.length > 0; reads += 1) {
    if (reads > readsInChain && open.size === 0)
      open = new Map((await openTasks(tracker)).map((task) => [task.id, task]));
    for (const id of next) asked.add(id);
    const unread = next.filter((id) => !open.has(id));
    const tasks = next.flatMap((id) => open.get(id) ?? []);
    if (unread.length > 0) tasks.push(...(await tracker.findMany(unread)));
    for (const task of tasks) found.set(task.id, task);
    // A dependency that was deleted is asked for once.
    next = [...new Set(tasks.flatMap(({ unmet }) => unmet))].filter((id) => !asked.has(id));
  }
  return found;
};
