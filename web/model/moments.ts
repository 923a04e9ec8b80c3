import { signal } from '@preact/signals';
import { type Frame, textOf } from '../data/frame.ts';
import type { TaskView } from '../data/tasks.ts';
import { createFold } from './fold.ts';

export const machines = ['task', 'agent', 'supervisor', 'mergeQueue', 'pullRequest'] as const;
export type Machine = (typeof machines)[number];

/** The one that the view of the machines shows. */
export const shownMachine = signal<Machine>('task');

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
