import type { ObjectFormat } from './blobs.ts';

export interface Repository {
  readonly kind: 'project' | 'own';
  /** The top of the user's working tree, absolute, symlinks resolved. */
  readonly top: string;
  /** The project below it: `` or `packages/one/`. */
  readonly prefix: string;
  readonly gitDir: string;
  /** Absolute; shared by all working trees. */
  readonly commonDir: string;
  readonly format: ObjectFormat;
  /** Folders of hooks, relative to the top. A person sees what changes there. */
  readonly hooks: readonly string[];
  /** Paths that the server trusts, relative to the top. No agent changes them. */
  readonly trusted: readonly string[];
  /** The only values of the user's configuration that we use: those that say how files look. */
  readonly carried: readonly (readonly [key: string, value: string])[];
}
