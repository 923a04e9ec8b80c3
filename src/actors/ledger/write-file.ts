import { dirname, join } from 'node:path';
import { removeLeftovers, writeFileAtomically } from '../files/atomic-write.ts';
import { makeRealFolder } from '../files/real-folder.ts';
import type { Database } from '../store/rows.ts';
import { issuesFileOf, stampOfIssues } from './issues-file.ts';

/** Somebody else changed the file while it was being written; it is as they left it. */
export class FileMovedError extends Error {
  override readonly name = 'FileMovedError';
}

export interface Written {
  readonly stamp: string;
  /** The lines that were new in it, by id. */
  readonly fresh: ReadonlyMap<string, string>;
}

export interface WriteRequest {
  readonly projectRoot: string;
  /** Lines that are no tasks. */
  readonly others: readonly string[];
  /** Stamp of the file that may be replaced. */
  readonly expected: string;
  /** False when bd keeps the tasks. */
  readonly isOurs: () => boolean;
  /** Called with the stamp of the new content just before the file has it. */
  readonly gives: (stamp: string) => void;
}

/** Rows that are read in one turn of the event loop. */
const tasksPerRead = 500;
/** No string may hold all comments that tasks can have. */
const pieceCharacters = 1024 * 1024;

/** Lines in pieces that are written one after another. */
function* inPieces(lines: Iterable<string>): Generator<string> {
  let piece = '';
  for (const line of lines) {
    piece += `${line}\n`;
    if (piece.length < pieceCharacters) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

/**
 * Writes all tasks in bd's form, sorted by id, so that a change is a small difference in git.
 * @throws FileMovedError, UnsafeFileError, and what the disk says
 */
export const writeIssuesFile = async (db: Database, request: WriteRequest): Promise<Written> => {
  const { projectRoot, others, expected, isOurs, gives } = request;
  const file = issuesFileOf(projectRoot);
  const fresh = new Map<string, string>();
  // A task that changes while the next ones are read is written by the next export.
  const next = db.prepare('select id, line, base from tasks where id > ? order by id limit ?');
  async function* pieces(): AsyncGenerator<string> {
    yield* inPieces(others);
    for (let after = '', isLast = false; !isLast; ) {
      const rows = await db.ask(next.all(after, tasksPerRead));
      for (const { id, line, base } of rows) if (base !== null) fresh.set(String(id), String(line));
      yield* inPieces(rows.map(({ line }) => String(line)));
      after = String(rows.at(-1)?.['id'] ?? after);
      isLast = rows.length < tasksPerRead;
    }
  }

  makeRealFolder(projectRoot, dirname(file));
  removeLeftovers(dirname(file));
  let stamp = '';
  await writeFileAtomically(file, pieces(), {
    mode: 0o600,
    beforeRename: (temporary) => {
      if (!isOurs() || stampOfIssues(file) !== expected)
        throw new FileMovedError(`${file} was changed by another program`);
      stamp = stampOfIssues(temporary);
      gives(stamp);
    },
  });
  return { stamp, fresh };
};

/**
 * Writes the tasks that the file does not hold as they are into one beside it. @returns its path in
 * the project
 */
export const writeNotInBd = async (db: Database, projectRoot: string): Promise<string> => {
  const path = '.beads/not-in-bd.jsonl';
  const rows = await db.ask(
    db.prepare('select line from tasks where base is not null order by id').all(),
  );
  const lines = rows.map(({ line }) => String(line));
  await writeFileAtomically(join(projectRoot, path), inPieces(lines), { mode: 0o600 });
  return path;
};
