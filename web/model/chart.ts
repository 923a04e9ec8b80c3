import packed from '../charts/charts.json' with { type: 'json' };
import type { PullRequest } from '../data/tasks.ts';
import type { Machine, Moment } from './moments.ts';
import { type Box, type Chart, type Exit, type Line, unpackChart } from './packed-chart.ts';

export type { Box, Chart, Exit, Line };

const charts: Readonly<Record<Machine, Chart>> = {
  task: unpackChart(packed.task),
  agent: unpackChart(packed.agent),
  supervisor: unpackChart(packed.supervisor),
  mergeQueue: unpackChart(packed.mergeQueue),
  pullRequest: unpackChart(packed.pullRequest),
};

export const chartOf = (machine: Machine): Chart => charts[machine];

/** A chart at one moment. */
export interface Scene {
  readonly here: string | null;
  /** States of its other regions, where several are active at once. */
  readonly also?: ReadonlySet<string>;
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

/** A pull request as its view says it is; its states have the words of the view. */
export const scenePullRequest = (found: PullRequest | undefined): Scene => {
  if (found === undefined) return sceneIn(null);
  const { state, checks, review, mergeable, waits_for: waits } = found;
  const regions = Object.entries({ checks, review, mergeable });
  const [here = null, ...also] = [
    ...(state === 'open' ? regions.map(([region, value]) => `open.${region}.${value}`) : []),
    ...(state === 'publishing' ? [`publishing.${waits === 'person' ? 'refused' : 'pushing'}`] : []),
    ...[state, `${state}.watching`],
  ].filter((path) => charts.pullRequest.states.some(({ id }) => id === path));
  return { ...sceneIn(here), also: new Set(also) };
};

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
