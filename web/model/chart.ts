import { signal } from '@preact/signals';
import packed from '../charts/charts.json' with { type: 'json' };
import { type Frame, textOf } from '../data/frame.ts';
import type { TaskView } from '../data/tasks.ts';
import { createFold } from './fold.ts';
import { type Box, type Chart, type Exit, type Line, unpackChart } from './packed-chart.ts';

export type { Box, Chart, Exit, Line };

export const machines = ['task', 'agent', 'supervisor', 'mergeQueue'] as const;
export type Machine = (typeof machines)[number];

const charts: Readonly<Record<Machine, Chart>> = {
  task: unpackChart(packed.task),
  agent: unpackChart(packed.agent),
  supervisor: unpackChart(packed.supervisor),
  mergeQueue: unpackChart(packed.mergeQueue),
};

/** The one that the view of the machines shows. */
export const shownMachine = signal<Machine>('task');

export const chartOf = (machine: Machine): Chart => charts[machine];

/** A transition that the journal holds. */
export interface Moment {
  readonly seq: number;
  /** Epoch ms. */
  readonly at: number;
  readonly attempt: number;
  readonly machine: Machine;
  /** The path of the state. */
  readonly state: string;
  /** The state of the same machine before; null at the first. */
  readonly before: string | null;
  readonly task: TaskView | null;
}

/** `{ started: { telling: 'closing' } }` as `started.telling.closing`. */
export const pathOfValue = (value: unknown): string => {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  const [[name, inner] = ['', '']] = Object.entries(value);
  const rest = pathOfValue(inner);
  return rest === '' ? name : `${name}.${rest}`;
};

const machineOf = (frame: Frame): Machine | null => {
  if (frame.type === 'mergeQueue') return frame.type;
  if (frame.type !== 'snapshot') return null;
  const name = textOf(frame.data['machine']);
  return name === 'task' || name === 'agent' ? name : null;
};

interface Moments {
  readonly all: Moment[];
  /** The latest state of each machine. */
  readonly states: Map<string, string>;
}

const addMoment = ({ all, states }: Moments, frame: Frame): void => {
  const machine = machineOf(frame);
  if (machine === null) return;
  const actor = machine === 'task' ? machine : `${machine} ${frame.attempt}`;
  const state = pathOfValue(frame.data['value']);
  all.push({
    ...{ seq: frame.seq, at: Date.parse(frame.timestamp), attempt: frame.attempt },
    ...{ machine, state, before: states.get(actor) ?? null },
    task: (frame.data['task'] as TaskView | undefined) ?? null,
  });
  states.set(actor, state);
};

/** The transitions in a history, oldest first. Each attempt has an agent of its own. */
export const createMoments = (): ((frames: readonly Frame[]) => readonly Moment[]) => {
  const fold = createFold<Frame, Moments>(() => ({ all: [], states: new Map() }), addMoment);
  let shown: readonly Moment[] = [];
  return (frames) => {
    const { all } = fold(frames);
    // The same list as long as nothing was added, so that nothing is drawn again.
    if (shown.length !== all.length || shown[0] !== all[0]) shown = [...all];
    return shown;
  };
};

/** A chart at one moment. */
export interface Scene {
  readonly here: string | null;
  readonly visited: ReadonlySet<string>;
  /** Lines that were taken, `from to`. */
  readonly taken: ReadonlySet<string>;
  /** Lines of the latest transition. */
  readonly last: ReadonlySet<string>;
  readonly latest: Moment | null;
}

const isImmediate = ({ on }: Line): boolean => on.some(({ event }) => event === 'always');

const searchSteps = ({ lines }: Chart, from: string, to: string): readonly string[] => {
  const before = new Map<string, string>();
  const next = [from];
  for (const state of next) {
    if (state === to) break;
    for (const line of lines)
      if (line.from === state && !before.has(line.to) && (state === from || isImmediate(line))) {
        before.set(line.to, state);
        next.push(line.to);
      }
  }
  const steps: string[] = [];
  for (let state: string | undefined = to; state !== undefined; state = before.get(state)) {
    steps.unshift(state);
    if (state === from) return steps;
  }
  return [from, to];
};

const knownSteps = new WeakMap<Chart, Map<string, readonly string[]>>();

/** The states from one to another: the first step by an event, the others taken at once. */
const stepsBetween = (chart: Chart, from: string, to: string): readonly string[] => {
  const known = knownSteps.get(chart) ?? new Map<string, readonly string[]>();
  knownSteps.set(chart, known);
  const steps = known.get(`${from} ${to}`) ?? searchSteps(chart, from, to);
  known.set(`${from} ${to}`, steps);
  return steps;
};

const pairs = (steps: readonly string[]): readonly string[] =>
  steps.slice(1).map((state, index) => `${steps[index]} ${state}`);

export const sceneAt = (moments: readonly Moment[], machine: Machine, seq: number): Scene => {
  const until = moments.filter((moment) => moment.seq <= seq);
  const attempt = until.at(-1)?.attempt ?? 0;
  const own = until.filter(
    (moment) => moment.machine === machine && (machine === 'task' || moment.attempt === attempt),
  );
  const latest = own.at(-1) ?? null;
  const chart = chartOf(machine);
  const stepsOf = ({ before, state }: Moment): readonly string[] =>
    before === null || before === state ? [state] : stepsBetween(chart, before, state);
  const steps = own.map(stepsOf);
  return {
    here: latest?.state ?? null,
    visited: new Set(steps.flat()),
    taken: new Set(steps.flatMap(pairs)),
    last: new Set(latest === null ? [] : pairs(stepsOf(latest))),
    latest,
  };
};

/** A state alone, of a machine whose transitions are not in the journal of a task. */
export const sceneIn = (state: string | null): Scene => ({
  here: state,
  visited: new Set(state === null ? [] : [state]),
  taken: new Set(),
  last: new Set(),
  latest: null,
});

/** Ways from one state to another: the events, with their guards. */
export const waysBetween = (
  { states, lines }: Chart,
  from: string,
  to: string,
): readonly Pick<Exit, 'event' | 'guard'>[] => [
  ...lines.filter((line) => line.from === from && line.to === to).flatMap(({ on }) => on),
  ...states
    .filter(({ id }) => id === from)
    .flatMap(({ exits }) => exits.filter((exit) => exit.to === to)),
];
