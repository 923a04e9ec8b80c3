// Draws the machines: docs/images/*-machine.svg for the docs and web/charts/charts.json for the
// page. With --check, fails when a file has drifted from its machine.
import { agentMachine } from '../build/machines/agent/agent-machine.js';
import { mergeQueueMachine } from '../build/machines/merge-queue/merge-queue-machine.js';
import { pullRequestMachine } from '../build/machines/pull-request/pull-request-machine.js';
import { sourceMachine } from '../build/machines/source/source-machine.js';
import { supervisorMachine } from '../build/machines/supervisor/supervisor-machine.js';
import { taskMachine } from '../build/machines/task/task-machine.js';
import { workflowMachine } from '../build/machines/workflow/workflow-machine.js';
import { drawSvg } from './charts/draw-svg.mjs';
import { layOut } from './charts/lay-out.mjs';
import { packChart } from './charts/pack-chart.mjs';
import { readChart } from './charts/read-chart.mjs';
import { generate } from './generated.mjs';

const ends = ['complete', 'failed', 'cancelled'];

const inQueue = [
  'idle',
  'checking',
  'existing',
  'ready',
  'free',
  'placed',
  'equipped',
  'funded',
  'asking',
];
const atWork = ['claiming', 'working', 'verifying', 'recording', 'merging', 'closing'];

/** `isExit`: a tick on the box stands for it. `main`: the usual way, drawn straight. */
const charts = {
  // From an end back into the queue, from a run back to `refused`, from the queue to an end.
  task: {
    machine: taskMachine,
    isExit: ({ from, to }) =>
      ends.includes(from) ||
      (from.startsWith('queued.') && ends.includes(to)) ||
      (from.startsWith('started.') && to === 'queued.refused'),
    main: [
      ...[...inQueue, 'waitingForSlot'].map((name) => `queued.${name}`),
      ...atWork.map((name) => `started.${name}`),
      'complete',
    ],
  },
  // Every state can fail, and a restart goes on in each.
  agent: {
    machine: agentMachine,
    isExit: ({ from, to }) => to === 'failed' || (from === 'preparing' && to !== 'considering'),
    main: ['preparing', 'considering', 'thinking', 'acting', 'done'],
  },
  supervisor: {
    machine: supervisorMachine,
    isExit: () => false,
    main: ['restoring', 'open', 'paused', 'probing'],
  },
  // Every phase can fail.
  workflow: {
    machine: workflowMachine,
    isExit: ({ to }) => to === 'failed',
    main: [
      ...['entering', 'creating', 'working', 'checking'].map((name) => `active.${name}`),
      'complete',
    ],
  },
  mergeQueue: {
    machine: mergeQueueMachine,
    isExit: () => false,
    main: ['idle', 'building', 'judging', 'landing', 'telling'],
  },
  pullRequest: {
    machine: pullRequestMachine,
    isExit: () => false,
    main: ['publishing.pushing', 'publishing.pushed', 'open.forge.watching', 'merged'],
  },
  source: { machine: sourceMachine, isExit: () => false, main: ['reading', 'over'] },
};

const drawn = {};
for (const [name, { machine, ...chart }] of Object.entries(charts))
  drawn[name] = await layOut(readChart(machine, chart));

for (const [name, chart] of Object.entries(drawn))
  generate(`docs/images/${name}-machine.svg`, drawSvg(chart, `The states of the ${name} machine`));
// A workflow is shown as its phases; what the page does not draw would be loaded by each visitor.
const { workflow: _workflow, source: _source, ...onPage } = drawn;
const packed = Object.entries(onPage).map(([name, chart]) => [name, packChart(chart)]);
generate('web/charts/charts.json', `${JSON.stringify(Object.fromEntries(packed))}\n`);
