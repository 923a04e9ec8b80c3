import { closeSync, constants, fstatSync, openSync, readFile, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { hasCode } from './error-code.ts';

/** A path of ours in a project holds a link, a pipe or a folder. */
export class UnsafeFileError extends Error {
  override readonly name = 'UnsafeFileError';
  readonly problem: string;
  readonly remedy: string;

  constructor(problem: string, remedy: string) {
    super(`${problem}; ${remedy}`);
    this.problem = problem;
    this.remedy = remedy;
  }
}

const linkError = (path: string): UnsafeFileError =>
  new UnsafeFileError(
    `${path} is a symbolic link`,
    'put the file itself there, or remove the link',
  );
const irregularError = (path: string): UnsafeFileError =>
  new UnsafeFileError(`${path} is not a regular file`, 'remove it');

/**
 * Opens a regular file. Does not follow a link in the last part of the path, or wait for a pipe.
 * @throws UnsafeFileError when something else is there, and system errors
 */
export const openRegular = (
  path: string,
  flags: number = constants.O_RDONLY,
  mode = 0o600,
): number => {
  let file: number;
  try {
    file = openSync(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, mode);
  } catch (error) {
    if (hasCode(error, 'ELOOP')) throw linkError(path);
    // A pipe without a reader, a socket, a folder.
    if (hasCode(error, 'ENXIO', 'EISDIR')) throw irregularError(path);
    throw error;
  }
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw irregularError(path);
};

const openToRead = (path: string, bytesAtMost: number): number => {
  const file = openRegular(path);
  const { size } = fstatSync(file);
  if (size <= bytesAtMost) return file;
  closeSync(file);
  throw new UnsafeFileError(
    `${path} holds ${size} bytes, more than ${bytesAtMost}`,
    'make it smaller',
  );
};

/** @throws as `openRegular`, and UnsafeFileError when the file is larger */
export const readRegular = (path: string, bytesAtMost: number): string => {
  const file = openToRead(path, bytesAtMost);
  try {
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
};

const readOpened = promisify(readFile);

/** `readRegular` without blocking the event loop. */
export const readRegularAsync = async (path: string, bytesAtMost: number): Promise<string> => {
  const file = openToRead(path, bytesAtMost);
  try {
    return await readOpened(file, 'utf8');
  } finally {
    closeSync(file);
  }
};
