import { closeSync, constants, fstatSync, fsync, ftruncateSync, lstatSync, readSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { openRegular } from '../files/regular-file.ts';

const syncToDisk = promisify(fsync);

/** A line that another program left without its end would swallow ours. */
const endsWithLine = (file: number, size: number): boolean => {
  const last = Buffer.alloc(1);
  return size === 0 || (readSync(file, last, 0, 1, size - 1) === 1 && last[0] === 10);
};

/**
 * Adds lines to a file so that they are on disk when the promise resolves, or not there at all: what could be written
 * only in part is cut off again. Under the file's lock.
 * @returns the size of the file before and after, or null when another program put a new file in its place meanwhile, so
 * that the lines went with the old one
 */
export const appendDurably = async (
  path: string,
  lines: string,
): Promise<{ readonly before: number; readonly after: number } | null> => {
  const file = openRegular(path, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT, 0o600);
  try {
    const { size, ino } = fstatSync(file);
    const text = endsWithLine(file, size) ? lines : `\n${lines}`;
    try {
      writeFileSync(file, text);
      await syncToDisk(file);
    } catch (error) {
      ftruncateSync(file, size);
      throw error;
    }
    if (lstatSync(path, { throwIfNoEntry: false })?.ino !== ino) return null;
    return { before: size, after: size + Buffer.byteLength(text) };
  } finally {
    closeSync(file);
  }
};
