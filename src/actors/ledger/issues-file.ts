import { closeSync, fstatSync, lstatSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openRegular } from '../files/regular-file.ts';

/** A million tasks. New lines are in memory together. */
export const issuesBytesAtMost = 512 * 1024 * 1024;

/** `.beads/issues.jsonl` of a project. */
export const issuesFileOf = (projectRoot: string): string =>
  join(projectRoot, '.beads', 'issues.jsonl');

/** Stamp of a file that is not there, or is empty. */
export const missing = 'missing';

/**
 * Tells two contents of the file apart without reading them; a file keeps it when it is renamed.
 */
export const stampOf = (file: string): string => {
  const found = lstatSync(file, { throwIfNoEntry: false, bigint: true });
  if (found === undefined || (found.isFile() && found.size === 0n)) return missing;
  return `${found.mtimeNs}/${found.size}/${found.ino}`;
};

/** Read in one turn of the event loop: with what is done with its lines, some milliseconds. */
const pieceBytes = 128 * 1024;
/** A description has at most 64 KiB; the rest is for comments. */
const lineCharactersAtMost = 16 * 1024 * 1024;

/** `text` is null for a line that is too long. */
type TakeLine = (text: string | null, number: number) => void;

/** Joins pieces to lines, each character once, and keeps no more of a line than it may have. */
const createIssueLines = (take: TakeLine) => {
  let parts: string[] = [];
  let length = 0;
  let number = 0;
  const push = (part: string): void => {
    length += part.length;
    if (length <= lineCharactersAtMost) parts.push(part);
  };
  const end = (): void => {
    number += 1;
    const text = parts.join('').replace(/\r$/, '');
    // Some editors put a byte order mark in front.
    const line = number === 1 ? text.replace(/^\ufeff/, '') : text;
    if (length > lineCharactersAtMost) take(null, number);
    else if (line.trim() !== '') take(line, number);
    parts = [];
    length = 0;
  };
  return {
    push: (piece: string): void => {
      for (const [index, part] of piece.split('\n').entries()) {
        if (index > 0) end();
        push(part);
      }
    },
    end,
  };
};

/** Why the file is not read at all; null when it is. */
export const sizeProblem = (file: string): string | null => {
  const { size } = lstatSync(file, { throwIfNoEntry: false }) ?? { size: 0 };
  if (size <= issuesBytesAtMost) return null;
  return `.beads/issues.jsonl holds ${size} bytes, and at most ${issuesBytesAtMost} are read; make it smaller`;
};

/** Calls `take` with each line that is not empty, and its number from 1. @throws UnsafeFileError */
export const readLines = async (file: string, take: TakeLine): Promise<void> => {
  const opened = openRegular(file);
  try {
    const { size } = fstatSync(opened);
    const decoder = new StringDecoder('utf8');
    const piece = Buffer.alloc(Math.min(pieceBytes, size + 1));
    const lines = createIssueLines(take);
    for (let got = readSync(opened, piece); got > 0; got = readSync(opened, piece)) {
      lines.push(decoder.write(piece.subarray(0, got)));
      await nextTurn();
    }
    lines.push(decoder.end());
    lines.end();
  } finally {
    closeSync(opened);
  }
};
