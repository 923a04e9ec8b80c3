import type { Plan } from './plan.ts';

/**
 * One way in which a repository or an agent tries to get something run, read or written on the
 * host.
 */
export interface Vector {
  /** What the repository holds before anybody works on it. */
  readonly plant?: (plan: Plan) => void;
  /** What the agent leaves in its folder. */
  readonly agent?: (folder: string, plan: Plan) => unknown;
  /** What goes on in the folder until the work is saved. @returns what ends it */
  readonly meanwhile?: (folder: string, plan: Plan) => () => void;
  /** Paths that are not saved, with all below them. */
  readonly notSaved?: readonly string[];
  /** Files that are saved otherwise than they stand in the folder. */
  readonly savedAs?: Readonly<Record<string, string>>;
  /** What must be said of it, where it is saved or merged in part. */
  readonly said?: readonly RegExp[];
  /**
   * What the user finds in the own folder after the merge, where it differs from what was saved.
   */
  readonly merged?: Readonly<Record<string, Buffer>>;
  /** The words of the refusal, of the repository or of the merge. */
  readonly refused?: RegExp;
  /** By chance it is refused so, or done. */
  readonly mayBeRefused?: RegExp;
}

export type Vectors = Readonly<Record<string, Vector>>;

/** Several at once, where none is refused: as a hostile repository would do it. */
export const together = (vectors: Vectors): Vectors => {
  const all = Object.values(vectors);
  const names = Object.keys(vectors);
  const combined: Vector = {
    plant: (plan) => {
      for (const { plant } of all) plant?.(plan);
    },
    agent: (folder, plan) => {
      for (const { agent } of all) agent?.(folder, plan);
    },
    notSaved: all.flatMap(({ notSaved = [] }) => notSaved),
    savedAs: Object.assign({}, ...all.map(({ savedAs }) => savedAs)),
    said: all.flatMap(({ said = [] }) => said),
    merged: Object.assign({}, ...all.map(({ merged }) => merged)),
  };
  return { [`${names.length} together: ${names.join('; ')}`]: combined };
};
