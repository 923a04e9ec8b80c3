import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  openSync,
  readdirSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs';
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import { look, openFolderIn, readLinkIn, within } from '../workspace/handles.ts';

export interface CopyBudget {
  bytes: number;
  entries: number;
}

const copyDepthAtMost = 200;
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const toBytes = (latin1: string): Buffer => Buffer.from(latin1, 'latin1');

/** A command can remove the owner's right to change a folder. */
export const makeChangeable = (folder: number): void => {
  const { mode } = fstatSync(folder);
  if ((mode & 0o700) !== 0o700) fchmodSync(folder, (mode & 0o777) | 0o700);
};

const withFolder = async (
  parent: number,
  name: string,
  use: (folder: number, names: readonly string[]) => unknown,
) => {
  const folder = openFolderIn(parent, name);
  try {
    makeChangeable(folder);
    await use(folder, readdirSync(`/proc/self/fd/${folder}`, 'latin1'));
  } finally {
    closeSync(folder);
  }
};

const copyRegularFile = async (folder: number, name: string, to: string): Promise<void> => {
  const file = openSync(within(folder, name), readFlags);
  try {
    if (fstatSync(file).isFile())
      await copyFile(`/proc/self/fd/${file}`, toBytes(to), constants.COPYFILE_EXCL);
  } finally {
    closeSync(file);
  }
};

/**
 * Copies files, folders and links; leaves out pipes and devices. @throws when the budget is used up
 */
export const copyWithinBudget = async (
  folder: number,
  name: string,
  to: string,
  room: CopyBudget,
  depth = 0,
): Promise<void> => {
  const found = look(folder, name);
  if (found === null) return;
  room.entries -= 1;
  room.bytes -= found.isFile() ? found.size : 0;
  if (room.entries < 0 || room.bytes < 0 || depth > copyDepthAtMost)
    throw new Error('it is too large to be copied');
  if (found.isSymbolicLink()) await symlink(readLinkIn(folder, name), toBytes(to));
  else if (found.isFile()) await copyRegularFile(folder, name, to);
  else if (found.isDirectory()) {
    await mkdir(toBytes(to), { mode: 0o700 });
    await withFolder(folder, name, async (inner, names) => {
      for (const each of names)
        await copyWithinBudget(inner, each, `${to}/${each}`, room, depth + 1);
    });
  }
};

export const removeTreeIn = async (folder: number, name: string): Promise<void> => {
  if (look(folder, name)?.isDirectory() !== true) return unlinkSync(within(folder, name));
  await withFolder(folder, name, async (inner, names) => {
    for (const each of names) await removeTreeIn(inner, each);
  });
  rmdirSync(within(folder, name));
};
