import { readFileSync, type Stats, statSync } from 'node:fs';
import { GitError } from './git.ts';

/** An index entry. Its name is latin1: one character per byte, whatever the encoding. */
export interface IndexEntry {
  readonly mode: number;
  readonly oid: string;
  /** The file's stat at checkout; a different stat means that the file may have changed. */
  readonly note: string;
  readonly changedAtMs: number;
}

export interface Index {
  readonly entries: ReadonlyMap<string, IndexEntry>;
  /** Files changed later than this (ms) may still have the same stat. */
  readonly trustedBeforeMs: number;
}

/** The kernel counts file times in steps of up to 10 ms. */
const clockStepMs = 20;
const fixedBytes = 40;

const noteFrom = (ctimeMs: number, mtimeMs: number, ino: number, size: number): string =>
  `${ctimeMs}:${mtimeMs}:${ino}:${size}`;

/** The same note from a file's stat. An index keeps the lower 32 bits of large numbers. */
export const noteOf = ({ ctimeMs, mtimeMs, ino, size }: Stats): string =>
  noteFrom(ctimeMs, mtimeMs, ino >>> 0, size >>> 0);

const timeAt = (bytes: Buffer, at: number): number =>
  bytes.readUInt32BE(at) * 1e3 + bytes.readUInt32BE(at + 4) / 1e6;

/**
 * Reads an index that our own git wrote (gitformat-index(5), version 2 or 3). @throws GitError for
 * any other
 */
export const readIndex = (file: string, oidBytes: number): Index => {
  const bytes = readFileSync(file);
  const version = bytes.readUInt32BE(4);
  if (bytes.toString('latin1', 0, 4) !== 'DIRC' || (version !== 2 && version !== 3))
    throw new GitError(`${file} is not an index of version 2 or 3; remove it`);
  const entries = new Map<string, IndexEntry>();
  let at = 12;
  for (let left = bytes.readUInt32BE(8); left > 0; left -= 1) {
    const [changedAtMs, modifiedAtMs] = [timeAt(bytes, at), timeAt(bytes, at + 8)];
    const note = noteFrom(
      changedAtMs,
      modifiedAtMs,
      bytes.readUInt32BE(at + 20),
      bytes.readUInt32BE(at + 36),
    );
    const oid = bytes.toString('hex', at + fixedBytes, at + fixedBytes + oidBytes);
    const flags = bytes.readUInt16BE(at + fixedBytes + oidBytes);
    const begin = at + fixedBytes + oidBytes + ((flags & 0x4000) === 0 ? 2 : 4);
    const end = bytes.indexOf(0, begin);
    entries.set(bytes.toString('latin1', begin, end), {
      mode: bytes.readUInt32BE(at + 24),
      oid,
      note,
      changedAtMs,
    });
    at += Math.ceil((end - at + 1) / 8) * 8;
  }
  return { entries, trustedBeforeMs: statSync(file).mtimeMs - clockStepMs };
};
