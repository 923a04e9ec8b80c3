import { statSync } from 'node:fs';
import { DatabaseGoneError } from './port.ts';

/**
 * Made when the database is open. The check throws DatabaseGoneError once another file, or none, is
 * at its path.
 */
export const createSameFileCheck = (file: string): (() => void) => {
  if (file === ':memory:') return () => {};
  const opened = statSync(file);
  return () => {
    const found = statSync(file, { throwIfNoEntry: false });
    if (found?.ino !== opened.ino || found.dev !== opened.dev)
      throw new DatabaseGoneError(
        `the database ${file} was removed or replaced while it was in use, so nothing can be saved`,
      );
  };
};
