import type { Tasks, TaskView } from '../data/tasks.ts';
import { needsYou } from './state.ts';

export interface Place {
  /** Number of the column, from the left. */
  readonly layer: number;
  /** Number of the place in its column. */
  readonly row: number;
}

export interface Node extends Place {
  readonly task: TaskView;
  readonly isCritical: boolean;
}

export interface Edge {
  readonly from: string;
  readonly to: string;
  /** Free places between the two, one in each layer. */
  readonly by: readonly Place[];
  readonly isCritical: boolean;
}

export interface Graph {
  readonly nodes: readonly Node[];
  readonly edges: readonly Edge[];
  /** Ids along the longest chain of open tasks. */
  readonly critical: readonly string[];
  /** Tasks with dependencies that are not drawn. */
  readonly hidden: number;
  /** Edges between drawn tasks that are not drawn. Those that follow from others do not count. */
  readonly hiddenEdges: number;
}

export const nodesAtMost = 150;
export const edgesAtMost = 400;
/** Free places that long edges pass, in all. */
export const placesAtMost = 1_500;
const sweeps = 4;

const isOpen = ({ status }: TaskView): boolean => status !== 'complete' && status !== 'cancelled';

/** A task's dependencies that are in the project. */
const prerequisites = (task: TaskView, all: Tasks): readonly string[] =>
  task.dependencies.filter((id) => all.has(id));

/** The longest chain of open tasks that ends at each; without recursion: chains may be long. */
const chainsOf = (
  all: Tasks,
): ReadonlyMap<string, readonly [length: number, before: string | null]> => {
  const chains = new Map<string, readonly [number, string | null]>();
  const visiting = new Set<string>();
  for (const root of all.keys()) {
    const stack = [root];
    for (let id = stack.at(-1); id !== undefined; id = stack.at(-1)) {
      const task = all.get(id);
      const before = task === undefined ? [] : prerequisites(task, all);
      const open = before.filter((each) => !chains.has(each) && !visiting.has(each));
      visiting.add(id);
      if (open.length > 0) {
        // Not by spreading: a task may have more dependencies than a call has room for.
        for (const each of open) stack.push(each);
        continue;
      }
      stack.pop();
      if (task === undefined || chains.has(id)) continue;
      const best = before
        .map((each) => [chains.get(each)?.[0] ?? 0, each] as const)
        .reduce((one, other) => (other[0] > one[0] ? other : one), [0, ''] as const);
      const own = isOpen(task) ? 1 : 0;
      chains.set(id, [best[0] + own, best[0] > 0 ? best[1] : null]);
    }
  }
  return chains;
};

const criticalPath = (all: Tasks): readonly string[] => {
  const chains = chainsOf(all);
  let last: string | null = null;
  for (const [id, [length]] of chains)
    if (length > 1 && length > (last === null ? 0 : (chains.get(last)?.[0] ?? 0))) last = id;
  const path: string[] = [];
  for (let id = last; id !== null; id = chains.get(id)?.[1] ?? null) path.unshift(id);
  return path.filter((id) => all.get(id) !== undefined && isOpen(all.get(id) as TaskView));
};

/** Tasks that have a dependency or are one. */
const joined = (all: Tasks): ReadonlySet<string> => {
  const found = new Set<string>();
  for (const task of all.values())
    for (const id of prerequisites(task, all)) found.add(id).add(task.task_id);
  return found;
};

const chosen = (
  all: Tasks,
  every: ReadonlySet<string>,
  critical: readonly string[],
): ReadonlySet<string> => {
  if (every.size <= nodesAtMost) return every;
  const first = new Set<string>(critical.slice(0, nodesAtMost));
  const add = (id: string): void => {
    if (first.size < nodesAtMost && every.has(id)) first.add(id);
  };
  for (const task of all.values()) if (needsYou(task)) add(task.task_id);
  for (const id of [...first]) for (const each of all.get(id)?.dependencies ?? []) add(each);
  for (const task of all.values())
    if (task.dependencies.some((id) => first.has(id))) add(task.task_id);
  for (const task of all.values()) if (isOpen(task)) add(task.task_id);
  return first;
};

/** For each drawn task what it waits for, of the drawn ones. */
type Drawn = ReadonlyMap<string, readonly string[]>;

const drawnOf = (ids: ReadonlySet<string>, all: Tasks): Drawn =>
  new Map(
    [...ids].map((id) => [
      id,
      [...new Set(all.get(id)?.dependencies)].filter((each) => ids.has(each)),
    ]),
  );

const layersOf = (drawn: Drawn): ReadonlyMap<string, number> => {
  const layers = new Map<string, number>([...drawn.keys()].map((id) => [id, 0]));
  // A cycle cannot be made; the bound keeps a broken list of tasks from running for ever.
  for (let round = 0, isMoved = true; isMoved && round < drawn.size; round += 1) {
    isMoved = false;
    for (const [id, dependencies] of drawn)
      for (const before of dependencies) {
        const layer = layers.get(before) ?? 0;
        if (layer < (layers.get(id) ?? 0)) continue;
        layers.set(id, layer + 1);
        isMoved = true;
      }
  }
  return layers;
};

type Ends = readonly [from: string, to: string];

/** The edges without those that follow from others: when c waits for b and b for a, a to c. */
const reduced = (drawn: Drawn, layers: ReadonlyMap<string, number>): readonly Ends[] => {
  const layer = (id: string): number => layers.get(id) ?? 0;
  const ordered = [...drawn].sort(([one], [other]) => layer(one) - layer(other));
  const ancestors = new Map<string, ReadonlySet<string>>();
  return ordered.flatMap(([to, dependencies]) => {
    const further = new Set<string>();
    for (const id of dependencies) for (const each of ancestors.get(id) ?? []) further.add(each);
    ancestors.set(to, new Set([...further, ...dependencies]));
    return dependencies.filter((from) => !further.has(from)).map((from): Ends => [from, to]);
  });
};

/** Two ends of an edge with what it passes between them. */
type Way = readonly string[];

/** An edge over several layers has a place in each of them, so that it crosses no task. */
const wayOf = (from: string, to: string, layers: Map<string, number>): Way => {
  const [first = 0, last = 0] = [layers.get(from), layers.get(to)];
  const between = Array.from({ length: Math.max(0, last - first - 1) }, (_, nth) => {
    const id = `${from} ${to} ${nth}`;
    layers.set(id, first + 1 + nth);
    return id;
  });
  return [from, ...between, to];
};

/** Places each item of a layer near the middle of what it is joined to. */
const rowsOf = (
  layers: ReadonlyMap<string, number>,
  ways: readonly Way[],
): ReadonlyMap<string, number> => {
  const columns: string[][] = [];
  for (const [id, layer] of layers) {
    while (columns.length <= layer) columns.push([]);
    columns[layer]?.push(id);
  }
  const rows = new Map<string, number>();
  const place = (): void => {
    for (const column of columns) for (const [row, id] of column.entries()) rows.set(id, row);
  };
  const neighbours = new Map<string, string[]>();
  const know = (id: string, other: string): void => {
    const known = neighbours.get(id);
    if (known === undefined) neighbours.set(id, [other]);
    else known.push(other);
  };
  for (const way of ways)
    for (const [nth, id] of way.slice(1).entries()) {
      know(id, way[nth] ?? '');
      know(way[nth] ?? '', id);
    }
  const middle = (id: string): number => {
    const near = neighbours.get(id) ?? [];
    if (near.length === 0) return rows.get(id) ?? 0;
    return near.reduce((sum, each) => sum + (rows.get(each) ?? 0), 0) / near.length;
  };
  place();
  for (let sweep = 0; sweep < sweeps; sweep += 1) {
    for (const column of columns) column.sort((one, other) => middle(one) - middle(other));
    place();
  }
  return rows;
};

/** As many as may be drawn: the critical path first, then short ones, which pass few places. */
const edgesToDraw = (
  every: readonly Ends[],
  layers: ReadonlyMap<string, number>,
  isCritical: (ends: Ends) => boolean,
): readonly Ends[] => {
  const span = ([from, to]: Ends): number => (layers.get(to) ?? 0) - (layers.get(from) ?? 0);
  const order = (ends: Ends): number => (isCritical(ends) ? 0 : span(ends));
  let places = 0;
  return [...every]
    .sort((one, other) => order(one) - order(other))
    .slice(0, edgesAtMost)
    .filter((ends) => {
      places += Math.max(0, span(ends) - 1);
      return places <= placesAtMost;
    });
};

/** The dependencies of a project as layers, from what comes first to what waits. */
export const graphOf = (all: Tasks): Graph => {
  const critical = criticalPath(all);
  const every = joined(all);
  const drawn = drawnOf(chosen(all, every, critical), all);
  const onPath = new Set(critical);
  const nextOnPath = new Map(critical.map((id, index) => [id, critical[index + 1]]));
  const isCritical = ([from, to]: Ends): boolean => nextOnPath.get(from) === to;
  const layers = new Map(layersOf(drawn));
  const needed = reduced(drawn, layers);
  const ways = edgesToDraw(needed, layers, isCritical).map(([from, to]) => wayOf(from, to, layers));
  const rows = rowsOf(layers, ways);
  const placeOf = (id: string): Place => ({
    layer: layers.get(id) ?? 0,
    row: rows.get(id) ?? 0,
  });
  const edges = ways.map((way): Edge => {
    const [from = '', to = ''] = [way[0], way.at(-1)];
    return { from, to, isCritical: isCritical([from, to]), by: way.slice(1, -1).map(placeOf) };
  });
  const nodes = [...drawn.keys()].flatMap((id) => {
    const task = all.get(id);
    return task === undefined ? [] : { task, ...placeOf(id), isCritical: onPath.has(id) };
  });
  return {
    ...{ nodes, edges, critical },
    hidden: every.size - nodes.length,
    hiddenEdges: needed.length - edges.length,
  };
};
