import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** `stamp` changes when another file takes its place. */
export interface BdProgram {
  /** Absolute, symlinks resolved. */
  readonly path: string;
  readonly stamp: string;
}

export const programAt = (path: string): BdProgram | null => {
  try {
    accessSync(path, constants.X_OK);
    const real = realpathSync(path);
    const { size, mtimeMs } = statSync(real);
    return statSync(real).isFile() ? { path: real, stamp: `${real}/${size}/${mtimeMs}` } : null;
  } catch {
    return null;
  }
};

/** Skips relative entries of PATH: one could be the project's folder. */
export const programOnPath = (name: string, env: NodeJS.ProcessEnv): BdProgram | null => {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    const found = isAbsolute(folder) ? programAt(join(folder, name)) : null;
    if (found !== null) return found;
  }
  return null;
};
