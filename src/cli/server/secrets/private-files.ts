import { randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { makeFolderDurably } from '../../../actors/files/real-folder.ts';
import { openRegular, readRegular, UnsafeFileError } from '../../../actors/files/regular-file.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { ConfigError } from '../../config/config-error.ts';

/** Others can access a private file or folder. The message says what to do. */
export class PrivateFileError extends Error {
  override readonly name = 'PrivateFileError';
}

/** The message says what to do. */
export class StateFolderError extends Error {
  override readonly name = 'StateFolderError';
}

export const stateFolderError = (folder: string, cause: unknown): StateFolderError => {
  const words = messageOf(cause);
  return new StateFolderError(
    `the state folder ${folder} cannot be used (${words}); make it writable, or set AGENT_STATE_DIR to another`,
    { cause },
  );
};

export const isOwnUid = (uid: number): boolean =>
  process.getuid === undefined || uid === process.getuid();

const requireOurs = (folder: string): void => {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found !== undefined && (!found.isDirectory() || !isOwnUid(found.uid)))
    throw new PrivateFileError(
      `${folder} belongs to somebody else; set AGENT_STATE_DIR to a folder of your own, or to a new one`,
    );
};

const requireWritable = (folder: string): void => {
  makeFolderDurably(folder);
  const { mode } = statSync(folder);
  if ((mode & 0o077) !== 0) chmodSync(folder, 0o700);
  accessSync(folder, constants.W_OK | constants.X_OK);
};

/**
 * Creates the state folder (0700) or tightens its mode; refuses one that others own. @throws
 * PrivateFileError, StateFolderError
 */
export const ensurePrivateFolder = (folder: string): void => {
  try {
    requireOurs(folder);
    requireWritable(folder);
  } catch (cause) {
    if (cause instanceof PrivateFileError) throw cause;
    throw stateFolderError(folder, cause);
  }
};

const createToken = (path: string): string => {
  const token = randomBytes(32).toString('base64url');
  const file = openSync(
    path,
    constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    writeSync(file, `${token}\n`);
    fsyncSync(file);
  } catch (error) {
    // Every later start would refuse half a token.
    unlinkSync(path);
    throw stateFolderError(dirname(path), error);
  } finally {
    closeSync(file);
  }
  return token;
};

const openToken = (path: string, refuse: (why: string) => never): number => {
  try {
    return openRegular(path);
  } catch (error) {
    if (error instanceof UnsafeFileError) return refuse('is not a regular file');
    throw error;
  }
};

/**
 * @throws PrivateFileError when the file is a link, belongs to somebody else, or is readable by
 * others
 */
export const readExistingToken = (path: string): string => {
  const refuse = (why: string): never => {
    throw new PrivateFileError(
      `the token file ${path} ${why}; delete it, and the server makes a new one`,
    );
  };
  const file = openToken(path, refuse);
  try {
    const stat = fstatSync(file);
    if (!isOwnUid(stat.uid)) return refuse('belongs to somebody else');
    if ((stat.mode & 0o077) !== 0) return refuse('is readable by others');
    const token = readFileSync(file, 'utf8').trim();
    return /^[A-Za-z0-9_-]{43}$/.test(token) ? token : refuse('contains no token');
  } finally {
    closeSync(file);
  }
};

/** Creates the token on first use. @throws as `readExistingToken`, StateFolderError */
export const readToken = (path: string): string =>
  lstatSync(path, { throwIfNoEntry: false }) === undefined
    ? createToken(path)
    : readExistingToken(path);

const privateBytesAtMost = 4_096;

/** A short file of the user's that holds a secret. @throws ConfigError, which names `key` */
export const readPrivateText = (
  path: string,
  key: string,
  bytesAtMost = privateBytesAtMost,
): string => {
  const refuse = (why: string): never => {
    throw new ConfigError(`${key}: ${path} ${why}`);
  };
  let text: string;
  try {
    const { uid, mode } = statSync(path);
    if (!isOwnUid(uid)) return refuse('belongs to somebody else; use a file of your own');
    if ((mode & 0o077) !== 0) return refuse(`is readable by others; run: chmod 600 ${path}`);
    text = readRegular(path, bytesAtMost);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')
      return refuse('does not exist');
    return refuse(`cannot be read (${messageOf(cause)})`);
  }
  return text;
};
