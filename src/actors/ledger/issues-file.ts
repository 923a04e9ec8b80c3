import { closeSync, fstatSync, lstatSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openRegular, UnsafeFileError } from '../files/regular-file.ts';

export const issuesBytesAtMost = 256 * 1024 * 1024;

/** `.beads/issues.jsonl` of a project. */
export const issuesFileOf = (projectRoot: string): string => join(projectRoot, '.beads', 'issues.jsonl');

export const missing = 'missing';

/** Tells two contents of the file apart without reading them; a file keeps it when it is renamed. */
export const stampOf = (file: string): string => {
  const found = lstatSync(file, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? missing : `${found.mtimeNs}/${found.size}/${found.ino}`;
};

/** So much is read in one turn of the event loop: with what is done with its lines, some milliseconds. */
const pieceBytes = 128 * 1024;

/** Calls `take` with each line that is not empty, and its number from 1. @throws UnsafeFileError */
export const readLines = async (file: string, take: (line: string, number: number) => void): Promise<void> => {
  const opened = openRegular(file);
  try {
    const { size } = fstatSync(opened);
    if (size > issuesBytesAtMost)
      throw new UnsafeFileError(`${file} holds ${size} bytes, more than ${issuesBytesAtMost}`, 'make it smaller');
    const decoder = new StringDecoder('utf8');
    const piece = Buffer.alloc(Math.min(pieceBytes, size + 1));
    let number = 0;
    let rest = '';
    const takeLine = (line: string): void => {
      number += 1;
      if (line.trim() !== '') take(line, number);
    };
    for (let got = readSync(opened, piece); got > 0; got = readSync(opened, piece)) {
      const lines = (rest + decoder.write(piece.subarray(0, got))).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) takeLine(line);
      await nextTurn();
    }
    takeLine(rest + decoder.end());
  } finally {
    closeSync(opened);
  }
};
