import { unlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import { stateFolderError } from './private-files.ts';
import { readServerFile, type ServerFile } from './server-file.ts';

/** @throws StateFolderError */
export const writeServerFile = (path: string, file: ServerFile): Promise<void> =>
  writeFileAtomically(path, `${JSON.stringify(file, null, 2)}\n`).catch((cause: unknown) => {
    throw stateFolderError(dirname(path), cause);
  });

/** Only if the file is still ours. */
export const removeServerFile = (path: string, pid: number): void => {
  if (readServerFile(path)?.pid === pid) unlinkSync(path);
};
