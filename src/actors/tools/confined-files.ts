import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '../files/error-code.ts';
import {
  type Access,
  type Checked,
  type InsidePath,
  locate,
  refuseForError,
  refusePath,
} from './confine.ts';

export const maxFileBytes = 10 * 1024 * 1024;

interface Folder {
  readonly handle: FileHandle;
  readonly path: string;
}

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/**
 * The path of a name in an open folder. On Linux it stays in that folder even when somebody swaps
 * the folder for a symlink meanwhile. Other systems have only the check of `locate` and O_NOFOLLOW.
 */
const pathInFolder = ({ handle, path }: Folder, name: string): string =>
  process.platform === 'linux' ? `/proc/self/fd/${handle.fd}/${name}` : join(path, name);

const openFolderAt = (path: string): Promise<FileHandle> =>
  open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

const ensureFolder = async (path: string): Promise<void> => {
  try {
    await mkdir(path);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
};

/** Opens part by part and follows no symlink: `locate` has resolved them. */
const openParts = async (
  root: string,
  parts: readonly string[],
  create: boolean,
): Promise<Folder> => {
  let folder: Folder = { handle: await openFolderAt(root), path: root };
  for (const part of parts) {
    try {
      const entry = pathInFolder(folder, part);
      if (create) await ensureFolder(entry);
      const handle = await openFolderAt(entry);
      await folder.handle.close();
      folder = { handle, path: join(folder.path, part) };
    } catch (error) {
      await folder.handle.close();
      throw error;
    }
  }
  return folder;
};

const inFolderOf = async <Value>(
  { root, place, create }: { root: string; place: InsidePath; create: boolean },
  use: (folder: Folder, name: string) => Promise<Value>,
): Promise<Value> => {
  const folder = await openParts(root, place.parts.slice(0, -1), create);
  try {
    return await use(folder, place.parts.at(-1) ?? '.');
  } finally {
    await folder.handle.close();
  }
};

const readBytes = async (handle: FileHandle, size: number): Promise<Buffer> => {
  const data = Buffer.alloc(size);
  let length = 0;
  while (length < size) {
    const { bytesRead } = await handle.read(data, length, size - length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return data.subarray(0, length);
};

const readChecked = async (path: string, handle: FileHandle): Promise<Checked<Buffer>> => {
  const stat = await handle.stat();
  if (stat.isDirectory()) return refusePath(path, 'is a folder; use find to see its files');
  if (!stat.isFile()) return refusePath(path, 'is not a regular file');
  if (stat.size > maxFileBytes)
    return refusePath(
      path,
      `has ${stat.size} bytes, more than the ${maxFileBytes} that can be read; use grep`,
    );
  return { ok: true, value: await readBytes(handle, stat.size) };
};

/** Reads a regular file of at most `maxFileBytes`. Never waits on a FIFO or a device. */
export const readInside = async (root: string, path: string): Promise<Checked<Buffer>> => {
  const located = await locate(root, path, 'read');
  if (!located.ok) return located;
  try {
    return await inFolderOf({ root, place: located.value, create: false }, async (folder, name) => {
      const handle = await open(pathInFolder(folder, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      try {
        return await readChecked(path, handle);
      } finally {
        await handle.close();
      }
    });
  } catch (error) {
    return refuseForError(path, error);
  }
};

interface Existing {
  readonly isFile: boolean;
  readonly mode: number;
}

const existingAt = async (entry: string): Promise<Existing | null> => {
  try {
    const stat = await lstat(entry);
    return { isFile: stat.isFile(), mode: stat.mode & 0o777 };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
};

const writeAndSync = async (
  handle: FileHandle,
  data: string | Buffer,
  mode: number | null,
): Promise<void> => {
  try {
    await handle.writeFile(data);
    if (mode !== null) await handle.chmod(mode);
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/** The rename replaces a hard link to a file elsewhere instead of writing through it. */
const replaceFile = async (
  folder: Folder,
  name: string,
  data: string | Buffer,
  mode: number | null,
): Promise<void> => {
  const temporary = pathInFolder(folder, `.agent-${randomUUID()}.tmp`);
  const handle = await open(temporary, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o666);
  try {
    await writeAndSync(handle, data, mode);
    await rename(temporary, pathInFolder(folder, name));
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await folder.handle.sync();
};

export interface WrittenFile {
  readonly created: boolean;
  readonly note: string;
}

const protectionNote = ({ reviewed }: InsidePath): string =>
  reviewed === null
    ? ''
    : `\n[${reviewed} runs on a person's machine: the person reviews it before the merge, and nothing runs it until then]`;

/** Writes the whole file or nothing. Makes missing folders; keeps the mode of an existing file. */
export const writeInside = async (
  root: string,
  path: string,
  data: string | Buffer,
  access: Exclude<Access, 'read'> = 'write',
  held: readonly string[] = [],
): Promise<Checked<WrittenFile>> => {
  const located = await locate(root, path, access, held);
  if (!located.ok) return located;
  try {
    return await inFolderOf({ root, place: located.value, create: true }, async (folder, name) => {
      const before = await existingAt(pathInFolder(folder, name));
      if (before?.isFile === false) return refusePath(path, 'is not a regular file');
      await replaceFile(folder, name, data, before?.mode ?? null);
      return { ok: true, value: { created: before === null, note: protectionNote(located.value) } };
    });
  } catch (error) {
    return refuseForError(path, error);
  }
};
