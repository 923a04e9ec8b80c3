import type { Plan } from './life.ts';
import type { Random } from './random.ts';

/** What a world is like, from its beginning to its end. */
export interface Traits extends Plan {
  /** How likely each act of the server is its last. */
  readonly crash: number;
  readonly maxTasks: number;
  /** So long people ask and things go wrong (ms). */
  readonly horizonMs: number;
  /** How often the tracker or the provider is away, or the disk is full. */
  readonly storms: number;
  /**
   * The tracker writes by itself, as bd does; else its changes are committed with the transitions.
   */
  readonly trackerWrites: boolean;
  /** The provider has limits. */
  readonly hasLimits: boolean;
  /** Half of the runs wait for their dependencies. */
  readonly waitsWhenAsked: boolean;
  /** Old histories are removed while tasks are at work. */
  readonly removesHistories: boolean;
  /** Somebody brings older contents of the file again and again. */
  readonly hasOldFile: boolean;
  /** People merge work, and take it back. */
  readonly merges: boolean;
  /** How long a commit is on its way to a far store, and its answer on the way back, at most (ms). */
  readonly commitMs: number;
}

const minute = 60_000;

export const drawTraits = (seed: number, random: Random): Traits => ({
  cap: 1 + random.below(3),
  roleCap: 1 + random.below(3),
  maxRetries: random.below(3),
  maxModelRetries: random.below(3),
  onInterrupted: random.pick(['ask', 'repeat', 'fail']),
  onDependencyFailure: random.pick(['wait', 'fail']),
  approvals: random.chance(0.2),
  verifies: random.chance(0.3),
  crash: random.pick([0, 0.001, 0.004, 0.02]),
  maxTasks: 2 + random.below(7) + (seed % 4 < 2 ? 4 : 0),
  horizonMs: minute * (1 + random.below(4)),
  storms: random.pick([0, 1, 3, 20]),
  // Not drawn, so that each occurs in every short row of seeds.
  answerMs: seed % 3 === 0 ? 0 : 90_000,
  trackerWrites: seed % 2 === 0,
  hasLimits: seed % 11 === 0 || seed % 11 > 8,
  waitsWhenAsked: seed % 7 === 0,
  removesHistories: seed % 5 === 0,
  hasOldFile: seed % 5 === 1,
  merges: seed % 4 < 2,
  hasTests: seed % 8 !== 0,
  mergesAtEnd: seed % 12 === 1,
  maxBatch: 1 + (seed % 5),
  commitMs: 50,
});
