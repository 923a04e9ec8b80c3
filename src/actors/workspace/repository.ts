import type { ObjectFormat } from './blobs.ts';

/** A repository that work is kept in: the user's own, or one of ours for a folder without git. */
export interface Repository {
  readonly kind: 'project' | 'own';
  /** The top of the user's working tree, absolute, symlinks resolved. */
  readonly top: string;
  /** The project below it: `` or `packages/one/`. */
  readonly prefix: string;
  /** Absolute; of the user's working tree. */
  readonly gitDir: string;
  /** Absolute; the part that all working trees share. */
  readonly commonDir: string;
  readonly format: ObjectFormat;
  /** Folders of hooks, relative to the top: a person sees what is changed there. */
  readonly hooks: readonly string[];
  /** Values of the user's configuration that say how files look, and nothing else of it. */
  readonly carried: readonly (readonly [key: string, value: string])[];
}
