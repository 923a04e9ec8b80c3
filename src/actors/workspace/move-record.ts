import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomically } from '../files/atomic-write.ts';
import { isPlain } from './plain.ts';

const recordSchema = z.strictObject({
  kind: z.enum(['project', 'own']),
  /** The content of HEAD, and the commits before and after. */
  head_text: z.string(),
  head: z.string(),
  target: z.string(),
  filters: z.array(z.string()),
});

/** A change of the user's files that is under way: on disk before the first file changes, removed after the last. */
export type MoveRecord = z.infer<typeof recordSchema>;

/** The folder of that record, in the state folder. */
export interface MovePlaces {
  readonly folder: string;
  /** The index that git works on, a copy of the user's. */
  readonly index: string;
  /** The user's index as it was. */
  readonly indexBefore: string;
}

export const movePlaces = (stateFolder: string): MovePlaces => {
  const folder = join(stateFolder, 'moving');
  return { folder, index: join(folder, 'index'), indexBefore: join(folder, 'index-before') };
};

const fileOf = ({ folder }: MovePlaces): string => join(folder, 'move.json');

const bytesAt = async (file: string): Promise<Buffer | null> => ((await isPlain(file, 'file')) ? readFile(file) : null);

export const readMove = async (places: MovePlaces): Promise<MoveRecord | null> => {
  const text = await readFile(fileOf(places), 'utf8').catch(() => null);
  return text === null ? null : recordSchema.parse(JSON.parse(text));
};

/** Writes the record, and copies the user's index. */
export const beginMove = async (places: MovePlaces, usersIndex: string, record: MoveRecord): Promise<void> => {
  await rm(places.folder, { recursive: true, force: true });
  await mkdir(places.folder, { mode: 0o700 });
  const bytes = await bytesAt(usersIndex);
  if (bytes !== null)
    for (const file of [places.index, places.indexBefore]) await writeFile(file, bytes, { mode: 0o600 });
  await writeFileAtomically(fileOf(places), JSON.stringify(record));
};

export const endMove = async (places: MovePlaces): Promise<void> => {
  await rm(fileOf(places), { force: true });
  await rm(places.folder, { recursive: true, force: true });
};

/** Puts the new index in the place of the user's, unless that has changed since the move began. */
export const installIndex = async (places: MovePlaces, usersIndex: string): Promise<boolean> => {
  const [now, before, next] = await Promise.all([usersIndex, places.indexBefore, places.index].map(bytesAt));
  if (next == null || (now === null) !== (before === null)) return false;
  if (now != null && before != null && !now.equals(before)) return false;
  const beside = `${usersIndex}.agent-server`;
  await rm(beside, { force: true });
  await writeFile(beside, next, { flag: 'wx', mode: 0o644 });
  await rename(beside, usersIndex);
  return true;
};
