import { codeOf } from '../../actors/files/error-code.ts';

const words: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'a part of its path is no folder',
  EISDIR: 'it is a folder',
  EACCES: 'you may not',
  EPERM: 'you may not',
  EROFS: 'its disk is read-only',
  ENOSPC: 'the disk is full',
  ENAMETOOLONG: 'its name is too long',
  ELOOP: 'its links lead in a circle',
  ERR_INVALID_ARG_VALUE: 'no file can have that name',
  ERR_FS_FILE_TOO_LARGE: 'it is too large',
};

/** Why a file cannot be read or written, without the text of the system. */
export const fileProblem = (error: unknown): string => {
  const code = codeOf(error) ?? 'unknown error';
  return words[code] ?? code;
};
