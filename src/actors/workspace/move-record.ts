import { createHash } from 'node:crypto';
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
  /** The hash of the user's index as it was; null when there was none. */
  index_hash: z.string().nullable(),
});

/** A change of the user's files that is under way: on disk before the first file changes, removed after the last. */
export type MoveRecord = z.infer<typeof recordSchema>;

/** The folder of that record, in the state folder. */
export interface MovePlaces {
  readonly folder: string;
  /** The index that git works on, a copy of the user's. */
  readonly index: string;
}

export const movePlaces = (stateFolder: string): MovePlaces => {
  const folder = join(stateFolder, 'moving');
  return { folder, index: join(folder, 'index') };
};

const fileOf = ({ folder }: MovePlaces): string => join(folder, 'move.json');

const bytesAt = async (file: string): Promise<Buffer | null> => ((await isPlain(file, 'file')) ? readFile(file) : null);

export const readMove = async (places: MovePlaces): Promise<MoveRecord | null> => {
  const text = await readFile(fileOf(places), 'utf8').catch(() => null);
  return text === null ? null : recordSchema.parse(JSON.parse(text));
};

const hashOf = (bytes: Buffer | null): string | null =>
  bytes === null ? null : createHash('sha256').update(bytes).digest('hex');

/** Copies the user's index. @returns its hash */
export const copyIndex = async (places: MovePlaces, usersIndex: string): Promise<string | null> => {
  await rm(places.folder, { recursive: true, force: true });
  await mkdir(places.folder, { mode: 0o700 });
  const bytes = await bytesAt(usersIndex);
  if (bytes !== null) await writeFile(places.index, bytes, { mode: 0o600 });
  return hashOf(bytes);
};

/** From now on the move is under way. */
export const beginMove = (places: MovePlaces, record: MoveRecord): Promise<void> =>
  writeFileAtomically(fileOf(places), JSON.stringify(record));

export const endMove = async (places: MovePlaces): Promise<void> => {
  await rm(fileOf(places), { force: true });
  await rm(places.folder, { recursive: true, force: true });
};

/** Puts the new index in the place of the user's, unless that has changed since the move began. */
export const installIndex = async (
  places: MovePlaces,
  usersIndex: string,
  { index_hash: before }: MoveRecord,
): Promise<boolean> => {
  const [now, next] = [await bytesAt(usersIndex), await bytesAt(places.index)];
  if (next === null || hashOf(now) !== before) return false;
  const beside = `${usersIndex}.agent-server`;
  await rm(beside, { force: true });
  await writeFile(beside, next, { flag: 'wx', mode: 0o644 });
  await rename(beside, usersIndex);
  return true;
};
