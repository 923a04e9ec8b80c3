import { unlinkSync } from 'node:fs';
import { writeFileAtomically } from '../../actors/atomic-write.ts';
import { readServerFile, type ServerFile } from './server-file.ts';

export const writeServerFile = (path: string, file: ServerFile): Promise<void> =>
  writeFileAtomically(path, `${JSON.stringify(file, null, 2)}\n`);

/** Removes the file if it is still ours. */
export const removeServerFile = (path: string, pid: number): void => {
  if (readServerFile(path)?.pid === pid) unlinkSync(path);
};
