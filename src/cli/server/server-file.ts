import { readFileSync, unlinkSync } from 'node:fs';
import { z } from 'zod';
import { writeFileAtomically } from '../../actors/atomic-write.ts';

const serverFileSchema = z.object({
  url: z.url(),
  pid: z.int().positive(),
  version: z.string(),
  started_at: z.iso.datetime(),
});
/** Where the server of a project listens (CONTRACT 1, server.json). */
export type ServerFile = z.infer<typeof serverFileSchema>;

export const readServerFile = (path: string): ServerFile | null => {
  try {
    return serverFileSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return null;
  }
};

export const writeServerFile = (path: string, file: ServerFile): Promise<void> =>
  writeFileAtomically(path, `${JSON.stringify(file, null, 2)}\n`);

/** Removes the file if it is still ours. */
export const removeServerFile = (path: string, pid: number): void => {
  if (readServerFile(path)?.pid === pid) unlinkSync(path);
};
