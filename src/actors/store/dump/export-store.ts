import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { messageOf } from '../../../machines/message-of.ts';
import { StoreError } from '../port.ts';
import type { Database, Work } from '../rows.ts';
import { createDigest, type TableDigest } from './digest.ts';
import { dumpTables, readTable } from './tables.ts';

export type StoreDigest = Readonly<Record<string, TableDigest>>;

export const dumpFormat = 1;

const pieceCharacters = 256 * 1024;

/** Writes lines to a file that has its name only when it is whole. @throws StoreError */
const createLineWriter = (path: string) => {
  const orSay = <Result>(write: () => Result): Result => {
    try {
      return write();
    } catch (cause) {
      throw new StoreError(`${path} cannot be written: ${messageOf(cause)}`, { cause });
    }
  };
  const temporary = `${path}.partial`;
  const file = orSay(() => openSync(temporary, 'w', 0o600));
  let piece = '';
  const flush = (): void => {
    writeFileSync(file, piece);
    piece = '';
  };
  return {
    line: (text: string): void => {
      piece += `${text}\n`;
      if (piece.length > pieceCharacters) orSay(flush);
    },
    end: (): void => {
      orSay(() => {
        flush();
        fsyncSync(file);
        renameSync(temporary, path);
      });
      closeSync(file);
    },
    undo: (): void => {
      closeSync(file);
      rmSync(temporary, { force: true });
    },
  };
};

/**
 * Writes all rows of a store, as they are at one moment, into a file: a line for each row, and for
 * each table its number of rows and their hash. Rejects with a StoreError.
 */
export const exportStore = async (
  db: Database,
  path: string,
  version: string,
): Promise<StoreDigest> => {
  const writer = createLineWriter(path);
  const writeAll = function* (): Work<StoreDigest> {
    const digests: Record<string, TableDigest> = {};
    const lastSeq = yield* db.lastSeq();
    writer.line(JSON.stringify({ agent_store: dumpFormat, version, last_seq: lastSeq }));
    for (const table of dumpTables) {
      const digest = createDigest();
      writer.line(JSON.stringify({ table: table.name, columns: table.columns }));
      yield* readTable(db, table, (line) => {
        digest.add(line);
        writer.line(line);
      });
      digests[table.name] = digest.end();
      writer.line(JSON.stringify({ end: table.name, ...digests[table.name] }));
    }
    writer.line(JSON.stringify({ end: 'store' }));
    return digests;
  };
  try {
    const digests = await db.read(writeAll);
    writer.end();
    return digests;
  } catch (error) {
    writer.undo();
    throw error;
  }
};
