import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** An executable file, and what tells that another one stands in its place. */
export interface BdProgram {
  /** Absolute, symlinks resolved. */
  readonly path: string;
  readonly stamp: string;
}

/** The executable file at an absolute path, or null. */
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

/** The program of this name on PATH, or null; a relative entry of PATH could be the project's own folder and is passed over. */
export const programOnPath = (name: string, env: NodeJS.ProcessEnv): BdProgram | null => {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    const found = isAbsolute(folder) ? programAt(join(folder, name)) : null;
    if (found !== null) return found;
  }
  return null;
};
