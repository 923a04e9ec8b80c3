import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../machines/message-of.ts';
import { hasCode } from '../files/error-code.ts';
import {
  look,
  openFolder,
  openFolderIn,
  readLinkIn,
  within,
} from '../workspace/folders/handles.ts';
import { removeTree } from '../workspace/folders/removal.ts';

interface CopyBudget {
  bytes: number;
  entries: number;
}

const copyDepthAtMost = 200;
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const toBytes = (latin1: string): Buffer => Buffer.from(latin1, 'latin1');

/** A command can remove the owner's right to change a folder. */
const makeChangeable = (folder: number): void => {
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
const copyWithinBudget = async (
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

const removeTreeIn = async (folder: number, name: string): Promise<void> => {
  if (look(folder, name)?.isDirectory() !== true) return unlinkSync(within(folder, name));
  await withFolder(folder, name, async (inner, names) => {
    for (const each of names) await removeTreeIn(inner, each);
  });
  rmdirSync(within(folder, name));
};

/** Protected paths that a command made and that were moved away. */
export interface Quarantined {
  readonly moved: readonly string[];
  readonly left: readonly string[];
  /**
   * Has the moved paths and `index.json`, which says where each was; null when nothing was moved.
   */
  readonly folder: string | null;
}

export const nothingQuarantined: Quarantined = { moved: [], left: [], folder: null };

const keptFolders = 100;
const fullBudget = (): CopyBudget => ({ bytes: 1024 ** 3, entries: 100_000 });
const latin1Of = (text: string): string => Buffer.from(text).toString('latin1');
const utf8Of = (latin1: string): string => Buffer.from(latin1, 'latin1').toString();

/** Opens the parent folder part by part; a link on the way is an error. */
const openParent = (root: number, path: string): number => {
  let folder = openFolderIn(root, '.');
  for (const part of path.split('/').slice(0, -1)) {
    try {
      const next = openFolderIn(folder, part);
      closeSync(folder);
      folder = next;
    } catch (error) {
      closeSync(folder);
      throw error;
    }
  }
  return folder;
};

const moveFrom = async (
  parent: number,
  name: string,
  into: { handle: number; path: string },
  as: string,
  left: CopyBudget,
) => {
  makeChangeable(parent);
  // Moving a folder writes its own entry `..`.
  if (look(parent, name)?.isDirectory()) {
    const own = openFolderIn(parent, name);
    makeChangeable(own);
    closeSync(own);
  }
  try {
    renameSync(within(parent, name), within(into.handle, as));
  } catch (error) {
    if (!hasCode(error, 'EXDEV')) throw error;
    await copyWithinBudget(parent, name, `${latin1Of(into.path)}/${as}`, left);
    await removeTreeIn(parent, name);
  }
};

/** Keeps the newest. A folder that cannot be removed stays until the next time. */
const removeOldFolders = async (folder: string): Promise<void> => {
  const names = await readdir(folder).catch(() => []);
  const ages = await Promise.all(
    names.map(async (name) => ({
      name,
      at: (await stat(join(folder, name)).catch(() => null))?.mtimeMs ?? 0,
    })),
  );
  const old = ages.sort((a, b) => b.at - a.at).slice(keptFolders);
  for (const { name } of old) await removeTree(join(folder, name)).catch(() => {});
};

const makeQuarantineFolder = async (folder: string): Promise<string> => {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return mkdtemp(join(folder, 'command-'));
};

/**
 * Moves what a command made to a folder that no command sees and no program obeys. No process of
 * the command may run any more. The names there are numbers; `index.json` says where each was.
 */
export const moveToQuarantine = async (
  root: string,
  paths: readonly string[],
  folder: string,
): Promise<Quarantined> => {
  const path = await makeQuarantineFolder(folder);
  const [from, into] = [openFolder(root), { handle: openFolder(path), path }];
  const index: Record<string, string> = {};
  const left: string[] = [];
  const space = fullBudget();
  const writeIndex = (moved: Record<string, string>): Promise<void> =>
    writeFile(join(path, 'index.json'), `${JSON.stringify({ root, moved }, null, 2)}\n`, {
      mode: 0o600,
    });
  try {
    // The server may not live to write it afterwards.
    await writeIndex(Object.fromEntries(paths.map((each, place) => [place + 1, utf8Of(each)])));
    for (const [place, each] of paths.entries()) {
      let parent: number | null = null;
      try {
        parent = openParent(from, each);
        await moveFrom(parent, each.split('/').at(-1) ?? each, into, String(place + 1), space);
        index[String(place + 1)] = utf8Of(each);
      } catch (error) {
        left.push(`${utf8Of(each)} (${messageOf(error)})`);
      } finally {
        if (parent !== null) closeSync(parent);
      }
    }
    await writeIndex(index);
  } finally {
    closeSync(from);
    closeSync(into.handle);
  }
  await removeOldFolders(folder);
  return { moved: Object.values(index), left, folder: path };
};
