import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomically } from '../../files/atomic-write.ts';
import { isPlain } from '../git/plain.ts';

const updateRecordSchema = z.strictObject({
  kind: z.enum(['project', 'own']),
  /** The content of HEAD, and the commits before and after. */
  head_text: z.string(),
  head: z.string(),
  target: z.string(),
  filters: z.array(z.string()),
  /** The hash of the user's index before; null when there was none. */
  index_hash: z.string().nullable(),
});

/**
 * A running update of the user's files. It is on disk before the first file changes, and removed
 * after the last.
 */
export type UpdateRecord = z.infer<typeof updateRecordSchema>;

export interface UpdatePlaces {
  readonly folder: string;
  /** The index that git works on: a copy of the user's. */
  readonly index: string;
}

export const updatePlacesIn = (stateFolder: string): UpdatePlaces => {
  const folder = join(stateFolder, 'moving');
  return { folder, index: join(folder, 'index') };
};

const fileOf = ({ folder }: UpdatePlaces): string => join(folder, 'move.json');

const bytesAt = async (file: string): Promise<Buffer | null> =>
  (await isPlain(file, 'file')) ? readFile(file) : null;

export const readUpdate = async (places: UpdatePlaces): Promise<UpdateRecord | null> => {
  const text = await readFile(fileOf(places), 'utf8').catch(() => null);
  return text === null ? null : updateRecordSchema.parse(JSON.parse(text));
};

const hashOfBytes = (bytes: Buffer | null): string | null =>
  bytes === null ? null : createHash('sha256').update(bytes).digest('hex');

/** @returns the hash of the user's index */
export const copyIndex = async (
  places: UpdatePlaces,
  usersIndex: string,
): Promise<string | null> => {
  await rm(places.folder, { recursive: true, force: true });
  await mkdir(places.folder, { mode: 0o700 });
  const bytes = await bytesAt(usersIndex);
  if (bytes !== null) await writeFile(places.index, bytes, { mode: 0o600 });
  return hashOfBytes(bytes);
};

export const beginUpdate = (places: UpdatePlaces, record: UpdateRecord): Promise<void> =>
  writeFileAtomically(fileOf(places), JSON.stringify(record));

export const endUpdate = async (places: UpdatePlaces): Promise<void> => {
  await rm(fileOf(places), { force: true });
  await rm(places.folder, { recursive: true, force: true });
};

/**
 * Replaces the user's index with the new one, unless the user's has changed since the update began.
 */
export const installIndex = async (
  places: UpdatePlaces,
  usersIndex: string,
  { index_hash: before }: UpdateRecord,
): Promise<boolean> => {
  const [now, next] = [await bytesAt(usersIndex), await bytesAt(places.index)];
  if (next === null || hashOfBytes(now) !== before) return false;
  const beside = `${usersIndex}.agent-server`;
  await rm(beside, { force: true });
  await writeFile(beside, next, { flag: 'wx', mode: 0o644 });
  await rename(beside, usersIndex);
  return true;
};
