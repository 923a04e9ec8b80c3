import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  type Stats,
} from 'node:fs';

const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const fileFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export const hasHandles = (): boolean =>
  process.platform === 'linux' &&
  lstatSync('/proc/self/fd', { throwIfNoEntry: false })?.isDirectory() === true;

export const handlePath = (folder: number): string => `/proc/self/fd/${folder}`;

/**
 * A path in an open folder, whose parents cannot be swapped. Names are latin1, one character per
 * byte.
 */
export const within = (folder: number, name: string): string | Buffer => {
  const path = `${handlePath(folder)}/${name}`;
  for (let at = 0; at < name.length; at += 1)
    if (name.charCodeAt(at) > 0x7f) return Buffer.from(path, 'latin1');
  return path;
};

export const openFolder = (path: string): number => openSync(path, folderFlags);
export const openFolderIn = (folder: number, name: string): number =>
  openSync(within(folder, name), folderFlags);
export const namesInHandle = (folder: number): readonly string[] =>
  readdirSync(handlePath(folder), { encoding: 'latin1' });

export const entriesIn = (folder: number): readonly Dirent[] =>
  readdirSync(handlePath(folder), { encoding: 'latin1', withFileTypes: true });

/** Linux's O_PATH, which Node does not name. It opens a folder whose mode forbids reading. */
const pathOnlyFlag = 0o10000000;
export const handleOf = (folder: number, name: string): number =>
  openSync(within(folder, name), pathOnlyFlag | constants.O_DIRECTORY | constants.O_NOFOLLOW);

export const isEmptyFolder = (folder: number, name: string): boolean => {
  const inside = openFolderIn(folder, name);
  try {
    return namesInHandle(inside).length === 0;
  } finally {
    closeSync(inside);
  }
};

export const look = (folder: number, name: string): Stats | null =>
  lstatSync(within(folder, name), { throwIfNoEntry: false }) ?? null;

export const readLinkIn = (folder: number, name: string): Buffer =>
  readlinkSync(within(folder, name), { encoding: 'buffer' });

export const withFile = <Result>(
  folder: number,
  name: string,
  use: (file: number, size: number) => Result,
): Result | null => {
  const file = openSync(within(folder, name), fileFlags);
  try {
    const stat = fstatSync(file);
    return stat.isFile() ? use(file, stat.size) : null;
  } finally {
    closeSync(file);
  }
};

/**
 * Opens a folder below an open one, part by part, so that no link is followed. The caller closes
 * it.
 */
export const openBelow = (folder: number, path: string): number => {
  let open = openFolderIn(folder, '.');
  for (const part of path.split('/').filter(Boolean)) {
    try {
      const next = openFolderIn(open, part);
      closeSync(open);
      open = next;
    } catch (error) {
      closeSync(open);
      throw error;
    }
  }
  return open;
};
