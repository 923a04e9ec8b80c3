import { expect, test } from 'vitest';
import type { AnyMachineSnapshot } from 'xstate';
import { isLong } from '../support/long.ts';
import { agentWorld } from './agent-world.ts';
import { type Edge, edgeName, everyEdge } from './chart-walker.ts';
import { supervisorWorld } from './supervisor-world.ts';
import { taskWorld } from './task-world.ts';
import { createWalk } from './walk.ts';
import type { World } from './world.ts';

const walkWorld = <Snapshot extends AnyMachineSnapshot, Memory>(name: string, world: World<Snapshot, Memory>) => {
  const taken = new Set<Edge>();
  const walks = [
    ...world.starts.map((start) => {
      const walk = createWalk(world, start);
      walk.shortest();
      return walk;
    }),
    ...(isLong ? world.tours : []).map((start) => {
      const walk = createWalk(world, start);
      walk.simple();
      walk.simpleFromRests();
      return walk;
    }),
  ];
  for (const walk of walks) for (const edge of walk.taken) taken.add(edge);
  const [paths, moves] = [
    walks.reduce((sum, { count }) => sum + count.paths, 0),
    walks.reduce((sum, { count }) => sum + count.moves, 0),
  ];
  const edges = everyEdge(world.machine);
  const missed = edges.filter((edge) => !taken.has(edge)).map((edge) => edgeName(world.machine, edge));
  process.stdout.write(
    `${name} paths, ${isLong ? 'shortest and simple' : 'shortest'}, no seed: ${paths} paths, ${moves} moves, ${edges.length - missed.length} of ${edges.length} edges\n`,
  );
  return { paths, missed };
};

const limitMs = isLong ? 540_000 : 30_000;

test(
  'every path of a task keeps the rules, and together they take every edge of its chart',
  () => {
    const { paths, missed } = walkWorld('task', taskWorld);

    expect(missed).toEqual([]);
    expect(paths).toBeGreaterThan(300);
  },
  limitMs,
);

test(
  'every path of the supervisor keeps the rules, and together they take every edge of its chart',
  () => {
    const { paths, missed } = walkWorld('supervisor', supervisorWorld);

    expect(missed).toEqual([]);
    expect(paths).toBeGreaterThan(300);
  },
  limitMs,
);

test(
  'every path of an agent keeps the rules, and together they take every edge of its chart',
  () => {
    const { paths, missed } = walkWorld('agent', agentWorld);

    expect(missed).toEqual([]);
    expect(paths).toBeGreaterThan(500);
  },
  limitMs,
);
