import { expect, test } from 'vitest';
import type { AnyMachineSnapshot } from 'xstate';
import { isLong } from '../support/long.ts';
import { agentWorld } from './agent-world.ts';
import { type Edge, edgeName, everyEdge } from './chart-walker.ts';
import { supervisorWorld } from './supervisor-world.ts';
import { taskWorld } from './task-world.ts';
import { createWalk } from './walk.ts';
import type { Start, World } from './world.ts';

type Walk = ReturnType<typeof createWalk>;

const walkWorld = <Snapshot extends AnyMachineSnapshot, Memory>(
  name: string,
  world: World<Snapshot, Memory>,
) => {
  const taken = new Set<Edge>();
  let [paths, moves] = [0, 0];
  // One after the other: each keeps the states that it came to, and all of them together are more
  // than fits.
  const walk = (start: Start, how: (walk: Walk) => void): void => {
    const walked = createWalk(world, start);
    how(walked);
    for (const edge of walked.taken) taken.add(edge);
    paths += walked.count.paths;
    moves += walked.count.moves;
  };
  for (const start of world.starts) walk(start, ({ shortest }) => shortest());
  for (const start of isLong ? world.tours : [])
    walk(start, ({ simple, simpleFromRests }) => {
      simple();
      simpleFromRests();
    });
  const edges = everyEdge(world.machine);
  const missed = edges
    .filter((edge) => !taken.has(edge))
    .map((edge) => edgeName(world.machine, edge));
  process.stdout.write(
    `${name} paths, ${isLong ? 'shortest and simple' : 'shortest'}, no seed: ${paths} paths, ${moves} moves, ${edges.length - missed.length} of ${edges.length} edges\n`,
  );
  return { paths, missed };
};

const limitMs = isLong ? 540_000 : 400_000;

test('every path of a task keeps the rules, and together they cover every edge of its chart', {
  tags: ['slow'],
  timeout: limitMs,
}, () => {
  const { paths, missed } = walkWorld('task', taskWorld);

  expect(missed).toEqual([]);
  expect(paths).toBeGreaterThan(300);
});

test('every path of the supervisor keeps the rules, and together they cover every edge of its chart', {
  tags: ['slow'],
  timeout: limitMs,
}, () => {
  const { paths, missed } = walkWorld('supervisor', supervisorWorld);

  expect(missed).toEqual([]);
  expect(paths).toBeGreaterThan(300);
});

test('every path of an agent keeps the rules, and together they cover every edge of its chart', {
  tags: ['slow'],
  timeout: limitMs,
}, () => {
  const { paths, missed } = walkWorld('agent', agentWorld);

  expect(missed).toEqual([]);
  expect(paths).toBeGreaterThan(500);
});
