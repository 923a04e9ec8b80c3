export const itemsAtMost = 1_000;

/** An item that becomes a task, or is one. */
export interface ImportItem {
  /** Identifies it in the tracker, also when it is imported again. */
  readonly ref: string;
  /** For people: `#12`, or its title. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly priority: number;
  readonly labels: readonly string[];
  /** The refs of other items, or ids of tasks. */
  readonly dependsOn: readonly string[];
  /** Of what its source says. A task with another one was edited there; null: it never is. */
  readonly version: string | null;
}

type Edges = Map<string, readonly string[]>;

/** The nodes from one to another along edges; null: there is no way. */
const pathBetween = (edges: Edges, from: string, to: string): readonly string[] | null => {
  const cameFrom = new Map<string, string | null>([[from, null]]);
  for (const node of cameFrom.keys()) {
    if (node === to) {
      const path: string[] = [];
      for (let at: string | null | undefined = node; at != null; at = cameFrom.get(at))
        path.unshift(at);
      return path;
    }
    for (const next of edges.get(node) ?? []) if (!cameFrom.has(next)) cameFrom.set(next, node);
  }
  return null;
};

export interface OrderedItem {
  readonly item: ImportItem;
  /** What it depends on: a task that is there by its id, another item by its ref. */
  readonly after: readonly string[];
  /** What it does not depend on, since each closes this cycle. */
  readonly cycles: readonly (readonly string[])[];
  /** Refs without an item or a task. */
  readonly unknown: readonly string[];
}

/**
 * The items in an order in which each comes after those that it depends on. `taskOf`: the id of the task
 * of a ref; `edges`: what tasks depend on. A dependency that would close a cycle is left out.
 */
export const orderItems = (
  items: readonly ImportItem[],
  taskOf: ReadonlyMap<string, string>,
  edges: ReadonlyMap<string, readonly string[]>,
): readonly OrderedItem[] => {
  const nodeOf = (ref: string): string => taskOf.get(ref) ?? ref;
  const known = new Set([...items.map(({ ref }) => nodeOf(ref)), ...edges.keys()]);
  const all: Edges = new Map(edges);
  const linked = items.map((item): OrderedItem => {
    const own = nodeOf(item.ref);
    const after: string[] = [];
    const cycles: (readonly string[])[] = [];
    const unknown: string[] = [];
    for (const ref of new Set(item.dependsOn)) {
      const on = nodeOf(ref);
      const path = known.has(on) ? pathBetween(all, on, own) : null;
      if (!known.has(on)) unknown.push(ref);
      else if (path !== null) cycles.push([own, ...path]);
      else {
        after.push(on);
        all.set(own, [...(all.get(own) ?? []), on]);
      }
    }
    return { item, after, cycles, unknown };
  });
  const byNode = new Map(linked.map((each) => [nodeOf(each.item.ref), each]));
  const ordered = new Set<OrderedItem>();
  const open = linked.toReversed();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { after } = next;
    const before = after.flatMap((node) => byNode.get(node) ?? []);
    const missing = before.filter((each) => !ordered.has(each));
    if (missing.length === 0) ordered.add(next);
    else open.push(next, ...missing);
  }
  return [...ordered];
};
