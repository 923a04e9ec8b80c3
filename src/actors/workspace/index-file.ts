import { readFileSync, type Stats, statSync } from 'node:fs';
import { GitError } from './git.ts';

/** A path of an index. Its name is a latin1 string: one character for each byte, whatever the bytes say. */
export interface IndexEntry {
  readonly mode: number;
  /** Hexadecimal. */
  readonly oid: string;
  /** The file's stat at checkout, to see changes by. */
  readonly note: string;
  readonly changedAtMs: number;
}

export interface Index {
  readonly entries: ReadonlyMap<string, IndexEntry>;
  /** A file that was changed later may have kept its note (ms). */
  readonly trustedBeforeMs: number;
}

/** The kernel counts the times of files in steps of at most 10 ms. */
const clockStepMs = 20;
const fixedBytes = 40;

const noteFrom = (ctimeMs: number, mtimeMs: number, ino: number, size: number): string =>
  `${ctimeMs}:${mtimeMs}:${ino}:${size}`;

/** The same of a file as it is now; an index keeps the lower 32 bits of large numbers. */
export const noteOf = ({ ctimeMs, mtimeMs, ino, size }: Stats): string =>
  noteFrom(ctimeMs, mtimeMs, ino >>> 0, size >>> 0);

const timeAt = (bytes: Buffer, at: number): number => bytes.readUInt32BE(at) * 1e3 + bytes.readUInt32BE(at + 4) / 1e6;

/** Reads an index that our own git wrote (gitformat-index(5), version 2 or 3). @throws GitError when it is another */
export const readIndex = (file: string, oidBytes: number): Index => {
  const bytes = readFileSync(file);
  const version = bytes.readUInt32BE(4);
  if (bytes.toString('latin1', 0, 4) !== 'DIRC' || (version !== 2 && version !== 3))
    throw new GitError(`${file} is not an index of version 2 or 3; remove it`);
  const entries = new Map<string, IndexEntry>();
  let at = 12;
  for (let left = bytes.readUInt32BE(8); left > 0; left -= 1) {
    const [changedAtMs, modifiedAtMs] = [timeAt(bytes, at), timeAt(bytes, at + 8)];
    const note = noteFrom(changedAtMs, modifiedAtMs, bytes.readUInt32BE(at + 20), bytes.readUInt32BE(at + 36));
    const oid = bytes.toString('hex', at + fixedBytes, at + fixedBytes + oidBytes);
    const flags = bytes.readUInt16BE(at + fixedBytes + oidBytes);
    const begin = at + fixedBytes + oidBytes + ((flags & 0x4000) === 0 ? 2 : 4);
    const end = bytes.indexOf(0, begin);
    entries.set(bytes.toString('latin1', begin, end), { mode: bytes.readUInt32BE(at + 24), oid, note, changedAtMs });
    at += Math.ceil((end - at + 1) / 8) * 8;
  }
  return { entries, trustedBeforeMs: statSync(file).mtimeMs - clockStepMs };
};
