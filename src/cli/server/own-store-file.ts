import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { StoreError } from '../../actors/store/port.ts';
import { messageOf } from '../../machines/message-of.ts';
import { type Project, readTrimmedOrNull, taskFiles } from '../config/places/project.ts';
import { UsageError } from '../words/usage-error.ts';

const isFileExistsError = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EEXIST';

/**
 * Records the first project that uses an SQLite file named by `store.url`, and refuses every other
 * one: the agents of a project must not get the tasks of another. @throws UsageError, StoreError
 */
export const requireOwnStoreFile = (file: string, project: Project): void => {
  if (file === taskFiles(project).journal) return;
  const owner = `${file}.project`;
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(owner, `${project.root}\n`, { flag: 'wx', mode: 0o600 });
    return;
  } catch (error) {
    if (!isFileExistsError(error))
      throw new StoreError(`${owner} cannot be written: ${messageOf(error)}`);
  }
  const root = readTrimmedOrNull(owner);
  if (root !== project.root)
    throw new UsageError(
      `${file} (store.url) keeps the tasks of ${root}, not of ${project.root}; name another file for this project, or remove ${owner} if you moved the project`,
    );
};
