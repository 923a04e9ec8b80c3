import { closeSync, fstatSync, fsync, ftruncateSync, openSync, readSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

const sync = promisify(fsync);

/** A line that another program left without its end would swallow ours. */
const endsWithLine = (file: number, size: number): boolean => {
  const last = Buffer.alloc(1);
  return size === 0 || (readSync(file, last, 0, 1, size - 1) === 1 && last[0] === 10);
};

/**
 * Adds lines to a file so that they are on disk when the promise resolves, or not there at all: what could be written
 * only in part is cut off again. Under the file's lock. @returns the size of the file afterwards
 */
export const appendDurably = async (path: string, lines: string): Promise<number> => {
  const file = openSync(path, 'a+');
  try {
    const { size } = fstatSync(file);
    const text = endsWithLine(file, size) ? lines : `\n${lines}`;
    try {
      writeFileSync(file, text);
      await sync(file);
    } catch (error) {
      ftruncateSync(file, size);
      throw error;
    }
    return size + Buffer.byteLength(text);
  } finally {
    closeSync(file);
  }
};
