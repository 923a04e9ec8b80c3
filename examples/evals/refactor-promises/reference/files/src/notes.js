import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const pathOf = (folder, name) => join(folder, `${name}.txt`);

/** The text of a note, or null when there is none. */
export const readNote = async (folder, name) => {
  try {
    return await readFile(pathOf(folder, name), 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
};

/** Whether it had to be written. */
export const writeNote = async (folder, name, text) => {
  if ((await readNote(folder, name)) === text) return false;
  await mkdir(folder, { recursive: true });
  await writeFile(pathOf(folder, name), text);
  return true;
};

/** Every note, by name. */
export const allNotes = async (folder) => {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.txt'));
  const names = files.map((name) => name.slice(0, -4)).sort();
  return Promise.all(names.map(async (name) => ({ name, text: await readNote(folder, name) })));
};
