import type { TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';

type Cycle = readonly TaskId[];

export interface OrderedTasks {
  /** Tasks in generations: each after all that it depends on. */
  readonly generations: readonly (readonly TrackedTask[])[];
  /** Tasks on a cycle, or behind one. */
  readonly cyclic: readonly { readonly task: TrackedTask; readonly cycle: Cycle }[];
}

type Graph = ReadonlyMap<TaskId, TrackedTask>;

const dependenciesIn = (graph: Graph, { unmet }: TrackedTask): readonly TaskId[] =>
  unmet.filter((id) => graph.has(id));

const dependentsOf = (graph: Graph): ReadonlyMap<TaskId, readonly TaskId[]> => {
  const dependents = new Map<TaskId, TaskId[]>();
  for (const task of graph.values())
    for (const id of dependenciesIn(graph, task)) {
      const known = dependents.get(id);
      if (known === undefined) dependents.set(id, [task.id]);
      else known.push(task.id);
    }
  return dependents;
};

/** Each task of `graph` depends on another one of it, so every walk ends in a cycle. */
const cyclesOf = (graph: Graph): ReadonlyMap<TaskId, Cycle> => {
  const cycles = new Map<TaskId, Cycle>();
  for (const start of graph.values()) {
    const path = new Set<TaskId>();
    let task: TrackedTask | undefined = start;
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
export const orderTasks = (tasks: readonly TrackedTask[]): OrderedTasks => {
  const graph: Graph = new Map(tasks.map((task) => [task.id, task]));
  const dependents = dependentsOf(graph);
  const left = new Map(
    [...graph.values()].map((task) => [task.id, dependenciesIn(graph, task).length]),
  );
  const generations: TrackedTask[][] = [];
  let next = [...graph.values()].filter(({ id }) => left.get(id) === 0);
  while (next.length > 0) {
    generations.push(next);
    const freed: TrackedTask[] = [];
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
  const rest: Graph = new Map([...graph].filter(([id]) => left.has(id)));
  const cycles = cyclesOf(rest);
  return {
    generations,
    cyclic: [...rest.values()].map((task) => ({ task, cycle: cycles.get(task.id) ?? [] })),
  };
};
