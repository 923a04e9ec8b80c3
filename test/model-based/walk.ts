import type { AnyMachineSnapshot, EventObject } from 'xstate';
import { getShortestPaths, getSimplePaths } from 'xstate/graph';
import { createWalker, type Edge } from './chart-walker.ts';
import type { Start, World } from './world.ts';

/** A path as XState's graph gives it: each step is an event and the state that it led to. */
interface Path<Snapshot> {
  readonly steps: readonly { readonly event: EventObject; readonly state: Snapshot }[];
}

/** Where a walk is, how it came there, and what it remembers of the way. */
interface Place<Snapshot, Memory> {
  readonly snapshot: Snapshot;
  readonly memory: Memory;
  readonly way: readonly string[];
}

/**
 * The same event at another time is the same event; what its time says, it says in a field of its
 * own.
 */
const nameOf = ({ at: _, ...event }: EventObject & { readonly at?: number }): string =>
  JSON.stringify(event);

/**
 * Walks the paths that XState's graph finds in a world, move by move on the chart itself, and
 * judges every move.
 */
export const createWalk = <Snapshot extends AnyMachineSnapshot, Memory>(
  world: World<Snapshot, Memory>,
  start: Start,
) => {
  const { machine, keyOf, isRest, sortOf, begin, follow } = world;
  const events = (snapshot: Snapshot) =>
    world.events(snapshot).filter((event) => start.without?.(event) !== true);
  type Here = Place<Snapshot, Memory>;
  const { first, step } = createWalker<Snapshot>(machine, start.input);
  const count = { paths: 0, moves: 0 };
  const taken = new Set<Edge>();

  const move = ({ snapshot, memory, way }: Here, event: EventObject): Here => {
    const { after, edges } = step(snapshot, event);
    const longer = [...way, nameOf(event)];
    count.moves += 1;
    for (const edge of edges) taken.add(edge);
    try {
      if (after.status === 'error') throw new Error('the chart broke', { cause: after.error });
      return {
        snapshot: after,
        memory: follow(memory, { before: snapshot, event, after }),
        way: longer,
      };
    } catch (cause) {
      throw new Error(`${String(cause)}\nafter ${start.says} by\n  ${longer.join('\n  ')}`, {
        cause,
      });
    }
  };

  /** The event of a step as it is at this very place: deadlines depend on how one came here. */
  const along = (here: Here, { event, state }: Path<Snapshot>['steps'][number]): Here => {
    const same = events(here.snapshot).find((each) => nameOf(each) === nameOf(event));
    if (same === undefined)
      throw new Error(`${nameOf(event)} cannot happen in ${keyOf(here.snapshot)}`);
    const there = move(here, same);
    if (keyOf(there.snapshot) === keyOf(state)) return there;
    throw new Error(
      `the key leaves out what matters: ${keyOf(there.snapshot)} by ${there.way.join('\n  ')}`,
    );
  };

  /** Walks each path, and from its end one move more by everything that may happen there. */
  const walkAll = (
    from: Here,
    paths: readonly Path<Snapshot>[],
    isOver: (place: Here) => boolean,
  ): void => {
    // Sorted, a path follows the one that it shares most of its beginning with, so that few moves
    // are made twice.
    const named = paths
      .map(({ steps }) => ({ steps, names: steps.slice(1).map(({ event }) => nameOf(event)) }))
      .map((path) => ({ ...path, order: path.names.join('\n') }))
      .sort((one, other) => (one.order < other.order ? -1 : 1));
    let trail: readonly Here[] = [];
    for (const { steps, names } of named) {
      const differs = names.findIndex((name, index) => trail[index]?.way.at(-1) !== name);
      const shared = trail.slice(0, differs < 0 ? names.length : differs);
      const places = [...shared];
      for (const next of steps.slice(1 + shared.length))
        places.push(along(places.at(-1) ?? from, next));
      trail = places;
      count.paths += 1;
      const end = trail.at(-1) ?? from;
      if (!isOver(end)) for (const event of events(end.snapshot)) move(end, event);
    }
  };

  const options = ({ snapshot }: Here) => ({
    fromState: snapshot,
    events,
    filterEvents: (state: Snapshot, event: EventObject) => state.can(event),
    serializeState: keyOf,
    serializeEvent: nameOf,
  });
  const opening = (start.prelude ?? []).reduce(move, {
    snapshot: first,
    memory: begin,
    way: [],
  } as Here);
  const shortest = () =>
    getShortestPaths(machine, options(opening) as never) as unknown as readonly Path<Snapshot>[];

  const simpleFrom = (from: Here): void => {
    const isNext = (snapshot: Snapshot): boolean => snapshot !== from.snapshot && isRest(snapshot);
    const paths = getSimplePaths(machine, { ...options(from), stopWhen: isNext } as never);
    walkAll(from, paths as unknown as readonly Path<Snapshot>[], ({ snapshot }) =>
      isNext(snapshot),
    );
  };

  return {
    count,
    taken,
    /** The shortest path to each state that can be reached at all. */
    shortest: () => walkAll(opening, shortest(), () => false),
    /** Every path that visits no state twice, from the start to where it comes to rest. */
    simple: () => simpleFrom(opening),
    /** Every such path to the next rest, from one rest of each sort that can be reached. */
    simpleFromRests: (): void => {
      const rests = shortest().filter(
        ({ steps }) => steps.length > 1 && isRest(steps.at(-1)?.state as Snapshot),
      );
      const sorts = new Map(
        rests.map((path) => [sortOf(path.steps.at(-1)?.state as Snapshot), path]),
      );
      for (const { steps } of sorts.values()) simpleFrom(steps.slice(1).reduce(along, opening));
    },
  };
};
