import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from 'xstate';

/** One step of a path: what was before, what happened, what is then. */
export interface Move<Snapshot> {
  readonly before: Snapshot;
  readonly event: EventObject;
  readonly after: Snapshot;
}

/** Where paths begin: a chart with an input, after some events. */
export interface Start {
  readonly says: string;
  readonly input: unknown;
  readonly prelude?: readonly EventObject[];
  /** What does not happen there, so that the paths can be counted. */
  readonly without?: (event: EventObject) => boolean;
}

/** A chart in a world that is small enough for every path through it to be walked. */
export interface World<Snapshot extends AnyMachineSnapshot, Memory> {
  readonly machine: AnyStateMachine;
  /** Where the shortest paths to every state begin. */
  readonly starts: readonly Start[];
  /** Where all simple paths begin. */
  readonly tours: readonly Start[];
  /** What may happen in a state, also what the chart does not take then. */
  readonly events: (snapshot: Snapshot) => readonly EventObject[];
  /**
   * Everything of a state on which depends what may follow: two states of one key have the same
   * future.
   */
  readonly keyOf: (snapshot: Snapshot) => string;
  /** Where a path ends, and the next one begins. */
  readonly isRest: (snapshot: Snapshot) => boolean;
  /** What of a rest decides on the paths that begin there. */
  readonly sortOf: (rest: Snapshot) => string;
  /** What must be remembered of a path to judge its next move. */
  readonly begin: Memory;
  /** Judges a move, and remembers it. */
  readonly follow: (memory: Memory, move: Move<Snapshot>) => Memory;
}
