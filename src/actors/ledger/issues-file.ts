import { isUtf8 } from 'node:buffer';
import { closeSync, fstatSync, lstatSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openRegular } from '../files/regular-file.ts';
import type { Answer } from '../store/port.ts';

/** A million tasks. New lines are in memory together. */
export const issuesBytesAtMost = 512 * 1024 * 1024;

export const issuesFileOf = (projectRoot: string): string =>
  join(projectRoot, '.beads', 'issues.jsonl');

/** Stamp of a file that is not there, or is empty. */
export const missing = 'missing';

/**
 * Tells two contents of the file apart without reading them; a file keeps it when it is renamed.
 */
export const stampOfIssues = (file: string): string => {
  const found = lstatSync(file, { throwIfNoEntry: false, bigint: true });
  if (found === undefined || (found.isFile() && found.size === 0n)) return missing;
  return `${found.mtimeNs}/${found.size}/${found.ino}`;
};

/** Read in one turn of the event loop: with what is done with its lines, some milliseconds. */
const pieceBytes = 128 * 1024;
/** A description has at most 64 KiB; the rest is for comments. */
const lineBytesAtMost = 16 * 1024 * 1024;
const lineFeed = 0x0a;

export type FileLine = (
  | {
      readonly text: string;
      /** A carriage return, or nothing; without the line feed. */
      readonly end: string;
      /** True of a first line with one; some editors put it there. */
      readonly hasByteOrderMark: boolean;
    }
  | { readonly problem: string }
) & {
  /** From 1. */
  readonly line: number;
};

const decodeLine = (bytes: Buffer, line: number): FileLine => {
  // Decoded all the same, other bytes would be replaced in the next export.
  if (!isUtf8(bytes)) return { line, problem: 'it is not UTF-8' };
  const whole = bytes.toString();
  const hasByteOrderMark = line === 1 && whole.startsWith('\ufeff');
  const end = whole.endsWith('\r') ? '\r' : '';
  const text = whole.slice(hasByteOrderMark ? 1 : 0, whole.length - end.length);
  return { line, text, end, hasByteOrderMark };
};

/** Joins pieces to lines, each byte once, and keeps no more of a line than it may have. */
const createIssueLines = () => {
  let ended: FileLine[] = [];
  let parts: Buffer[] = [];
  let length = 0;
  let number = 0;
  const push = (part: Buffer): void => {
    length += part.length;
    if (length <= lineBytesAtMost) parts.push(part);
  };
  const end = (): void => {
    number += 1;
    const line =
      length > lineBytesAtMost
        ? { line: number, problem: 'it is too long' }
        : decodeLine(Buffer.concat(parts), number);
    ended.push(line);
    parts = [];
    length = 0;
  };
  return {
    push: (piece: Buffer): void => {
      let from = 0;
      for (let to = piece.indexOf(lineFeed); to >= 0; to = piece.indexOf(lineFeed, from)) {
        push(piece.subarray(from, to));
        end();
        from = to + 1;
      }
      // The next piece is read into the same memory.
      push(Buffer.from(piece.subarray(from)));
    },
    end,
    /** The lines that ended since the last call. */
    take: (): readonly FileLine[] => {
      const taken = ended;
      ended = [];
      return taken;
    },
  };
};

/** Why the file is not read at all; null when it is. */
export const sizeProblem = (file: string): string | null => {
  const { size } = lstatSync(file, { throwIfNoEntry: false }) ?? { size: 0 };
  if (size <= issuesBytesAtMost) return null;
  return `.beads/issues.jsonl holds ${size} bytes, and at most ${issuesBytesAtMost} are read; make it smaller`;
};

/**
 * Calls `take` with all lines, some at a time; the last one is empty when a line feed ends the file.
 * @throws UnsafeFileError
 */
export const readLines = async (
  file: string,
  take: (lines: readonly FileLine[]) => Answer<void>,
): Promise<void> => {
  const opened = openRegular(file);
  try {
    const { size } = fstatSync(opened);
    const piece = Buffer.alloc(Math.min(pieceBytes, size + 1));
    const lines = createIssueLines();
    for (let got = readSync(opened, piece); got > 0; got = readSync(opened, piece)) {
      lines.push(piece.subarray(0, got));
      await take(lines.take());
      await nextTurn();
    }
    lines.end();
    await take(lines.take());
  } finally {
    closeSync(opened);
  }
};
