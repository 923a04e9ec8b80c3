import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
};

/** Skips relative entries of PATH: one could be the project's folder. */
export const findProgram = (program: string, path: string): string | null => {
  if (isAbsolute(program)) return isExecutable(program) ? program : null;
  const folder = path
    .split(delimiter)
    .find((each) => isAbsolute(each) && isExecutable(join(each, program)));
  return folder === undefined ? null : join(folder, program);
};
