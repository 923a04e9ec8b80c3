import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { agentMachine } from '../../src/machines/agent/agent-machine.ts';
import { mergeQueueMachine } from '../../src/machines/merge-queue/merge-queue-machine.ts';
import { supervisorMachine } from '../../src/machines/supervisor/supervisor-machine.ts';
import { taskMachine } from '../../src/machines/task/task-machine.ts';
import { type Chart, type PackedChart, unpackChart } from '../../web/model/packed-chart.ts';

type Box = Chart['states'][number];

const charts: Readonly<Record<string, PackedChart>> = JSON.parse(
  readFileSync(new URL('../../web/charts/charts.json', import.meta.url), 'utf8'),
);
const machines: Readonly<Record<string, AnyStateMachine>> = {
  task: taskMachine,
  agent: agentMachine,
  supervisor: supervisorMachine,
  mergeQueue: mergeQueueMachine,
};

const statesBelow = (node: AnyStateNode): readonly AnyStateNode[] =>
  Object.values(node.states).flatMap((state) => [state, ...statesBelow(state)]);

/** How often a state can go somewhere: one for each target of each of its transitions. */
const waysOut = (node: AnyStateNode): number =>
  [...node.transitions.values(), node.always ?? []]
    .flat()
    .reduce((sum, { target }) => sum + (target?.length ?? 1), 0);

const chartOf = (name: string): Chart => {
  const chart = charts[name];
  if (chart === undefined) throw new Error(`no chart of ${name}`);
  return unpackChart(chart);
};

const overlap = (one: Box, other: Box): boolean =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height;

test.each(Object.entries(machines))(
  'the chart of the %s machine has every state, and every transition as a line or a tick',
  (name, machine) => {
    const { groups, states, lines } = chartOf(name);
    const below = statesBelow(machine.root);
    const boxes = [...groups, ...states];

    expect(new Set(boxes.map(({ id }) => id))).toEqual(
      new Set(below.map(({ path }) => path.join('.'))),
    );
    const ticked = boxes.reduce((sum, { exits }) => sum + exits.length, 0);
    const drawn = lines.reduce((sum, { on }) => sum + on.length, 0);
    expect(ticked + drawn).toBe(below.reduce((sum, node) => sum + waysOut(node), 0));
    expect(drawn).toBeGreaterThan(states.length / 2);
  },
);

test.each(Object.keys(machines))(
  'the chart of the %s machine has no box over another and no line through a box',
  (name) => {
    const { width, height, states, lines } = chartOf(name);

    const overlaps = states.flatMap((one, nth) =>
      states.slice(nth + 1).flatMap((other) => (overlap(one, other) ? [[one.id, other.id]] : [])),
    );
    expect(overlaps).toEqual([]);
    for (const { from, to, points } of lines)
      for (const [nth, [x = 0, y = 0]] of points.entries()) {
        expect(x >= 0 && x <= width && y >= 0 && y <= height).toBe(true);
        const [nextX = x, nextY = y] = points[nth + 1] ?? [x, y];
        const segment = {
          ...{ id: '', exits: [], x: Math.min(x, nextX), y: Math.min(y, nextY) },
          ...{ width: Math.abs(nextX - x), height: Math.abs(nextY - y) },
        };
        const crossed = states.filter(
          (box) => box.id !== from && box.id !== to && overlap(box, segment),
        );
        expect({ line: `${from} → ${to}`, crossed }).toEqual({
          line: `${from} → ${to}`,
          crossed: [],
        });
      }
  },
);
