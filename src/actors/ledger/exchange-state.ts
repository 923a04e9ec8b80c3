import { randomUUID } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeRealFolder } from '../files/real-folder.ts';
import { readRegular } from '../files/regular-file.ts';
import type { Database, Work } from '../store/rows/rows.ts';

/** A content of the file that cannot be taken. */
export interface WaitingImport {
  readonly stamp: string;
  readonly problem: string;
}

/**
 * Kept in the database, so that all processes of a project know the same of the file. `took`, `wait`
 * and `wrote` belong inside a transaction.
 */
export interface ExchangeState {
  /** Stamp of the content that the tables took or gave last; null before the first. */
  stamp(): Work<string | null>;
  others(): Work<readonly string[]>;
  waiting(): Work<WaitingImport | null>;
  /** The folder whose file the tables know has it; null before the first. */
  mark(): Work<string | null>;
  took(stamp: string, others: readonly string[], mark: string | null): Work<string | null>;
  wait(waiting: WaitingImport): Work<void>;
  /** True when the file lacks a change of the tables. */
  isBehind(): Work<boolean>;
  /** The file holds these lines now, by id. */
  wrote(lines: readonly (readonly [id: string, line: string])[]): Work<void>;
}

export const createExchangeState = (db: Database): ExchangeState => {
  const value = db.prepare('select value from ledger where key = ?');
  const set = db.prepare(
    'insert into ledger (key, value) values (?, ?) on conflict (key) do update set value = excluded.value',
  );
  const unset = db.prepare('delete from ledger where key = ?');
  const behind = db.prepare('select 1 as one from tasks where base is not null limit 1');
  const wrote = db.prepare(
    'update tasks set base = case when line = ?1 then null else cast(?1 as text) end where id = ?2 and base is not null',
  );
  const textOf = function* (key: string): Work<string | null> {
    const row = yield* value.first(key);
    return row === null ? null : String(row['value']);
  };

  return {
    stamp: () => textOf('file'),
    *others() {
      return JSON.parse((yield* textOf('others')) ?? '[]') as readonly string[];
    },
    *waiting() {
      return JSON.parse((yield* textOf('waiting')) ?? 'null') as WaitingImport | null;
    },
    mark: () => textOf('mark'),
    *took(stamp, others, mark) {
      yield* set.run('file', stamp);
      yield* set.run('others', JSON.stringify(others));
      yield* unset.run('waiting');
      if (mark !== null) yield* set.run('mark', mark);
      return mark;
    },
    *wait(waiting) {
      yield* set.run('waiting', JSON.stringify(waiting));
    },
    *isBehind() {
      return (yield* behind.first()) !== null;
    },
    *wrote(lines) {
      for (const [id, line] of lines) yield* wrote.run(line, id);
    },
  };
};

/**
 * Marks beside the tasks file. Each time that a store knows the file again it adds one, and keeps it
 * too. A clone, an older copy or a restored backup has not the last mark of the store: what its file
 * lacks was never removed by anybody. An edit, `git checkout` and `git stash` leave the marks alone.
 */
export interface FolderMarks {
  has(mark: string): boolean;
  /** @throws UnsafeFileError, and what the disk says */
  add(): string;
}

/** Several stores may share a folder, and one may have been away for some time. */
const marksAtMost = 50;
const bytesAtMost = 64 * 1024;
const before = '# ';

const folderIn = (projectRoot: string): string => join(projectRoot, '.beads', '.exchange');
// Git ignores a folder with this one, and the file itself.
const fileIn = (projectRoot: string): string => join(folderIn(projectRoot), '.gitignore');

/** The newest first. */
export const marksIn = (projectRoot: string): readonly string[] => {
  let text: string;
  try {
    text = readRegular(fileIn(projectRoot), bytesAtMost);
  } catch {
    return [];
  }
  const lines = text.split('\n').filter((line) => line.startsWith(before));
  return lines.map((line) => line.slice(before.length));
};

export const createFolderMarks = (projectRoot: string): FolderMarks => {
  const [folder, file] = [folderIn(projectRoot), fileIn(projectRoot)];
  const read = (): readonly string[] => marksIn(projectRoot);
  return {
    has: (mark) => read().includes(mark),
    add: () => {
      const mark = randomUUID();
      const temporary = `${file}.${mark}`;
      const lines = [mark, ...read()].slice(0, marksAtMost).map((each) => `${before}${each}\n`);
      makeRealFolder(projectRoot, folder);
      try {
        // Without fsync: a mark that is lost with the power removes no task.
        writeFileSync(temporary, `*\n${lines.join('')}`, { flag: 'wx', mode: 0o600 });
        renameSync(temporary, file);
      } catch (error) {
        rmSync(temporary, { force: true });
        throw error;
      }
      return mark;
    },
  };
};
