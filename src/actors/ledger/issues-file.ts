import { isUtf8 } from 'node:buffer';
import { closeSync, fstatSync, lstatSync, readSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { removeLeftovers, writeFileAtomically } from '../files/atomic-write.ts';
import { makeRealFolder } from '../files/real-folder.ts';
import { openRegular } from '../files/regular-file.ts';
import type { Answer } from '../store/port.ts';
import { type Database, manyPlaces, rowsOfMany } from '../store/rows/rows.ts';
import { idIn } from './issue-line.ts';

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

/** Tasks in one transaction of an import or export: a few milliseconds. */
const chunk = 200;

export const chunksOf = <Element>(
  all: readonly Element[],
  size = chunk,
): readonly (readonly Element[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, n) =>
    all.slice(n * size, (n + 1) * size),
  );

/** A line of the file: of a task, whose text is in the tables, or of something else. */
type LayoutLine = { readonly end: string } & ({ readonly id: string } | { readonly text: string });

/** The form of the file, without its tasks: order, line ends, and lines that are no task. */
interface FileLayout {
  readonly start: '' | '\ufeff';
  readonly lines: readonly LayoutLine[];
}

/**
 * Reads the order of a file that the tables know, its line ends, and what is not in the tables.
 * @throws UnsafeFileError
 */
const readLayout = async (file: string): Promise<FileLayout> => {
  let start: FileLayout['start'] = '';
  const lines: LayoutLine[] = [];
  const add = (found: FileLine): void => {
    // The file was replaced since the tables took it; the write finds that, too.
    if ('problem' in found) return;
    if (found.hasByteOrderMark) start = '\ufeff';
    const { text, end } = found;
    const id = idIn(text);
    lines.push(id === null ? { text, end } : { id, end });
  };
  await readLines(file, (found) => {
    for (const each of found) add(each);
  });
  return { start, lines };
};

const isSorted = (ids: readonly string[]): boolean =>
  ids.every((id, index) => index === 0 || (ids[index - 1] ?? '') < id);

/**
 * The layout with lines for new tasks, in the order of their creation: each at its place in a file
 * that is sorted by id, as ours is, so that git merges those of two branches; else at the end.
 */
const withNewTasks = ({ start, lines }: FileLayout, fresh: readonly string[]): FileLayout => {
  const ids = lines.flatMap((line) => ('id' in line ? [line.id] : []));
  const end = lines[0]?.end ?? '';
  const there = new Set(ids);
  const added = fresh.filter((id) => !there.has(id));
  const waiting = isSorted(ids) ? added.sort() : [];
  const placed: LayoutLine[] = [];
  let next = 0;
  for (const line of lines) {
    while ('id' in line && next < waiting.length && (waiting[next] ?? '') < line.id) {
      placed.push({ id: waiting[next] ?? '', end });
      next += 1;
    }
    placed.push(line);
  }
  const last = (waiting.length > 0 ? waiting.slice(next) : added).map((id) => ({ id, end }));
  if (last.length === 0) return { start, lines: placed };
  const final = placed.at(-1);
  const isEnded = final !== undefined && 'text' in final && final.text + final.end === '';
  const whole = isEnded
    ? placed.slice(0, -1)
    : placed.with(-1, { ...(final ?? { text: '' }), end });
  return { start, lines: [...whole, ...last, { text: '', end: '' }] };
};

/** Somebody else changed the file while it was being written; it is as they left it. */
export class FileMovedError extends Error {
  override readonly name = 'FileMovedError';
}

interface Written {
  readonly stamp: string;
  /** The lines that were new in it, by id. */
  readonly fresh: ReadonlyMap<string, string>;
}

interface WriteRequest {
  readonly projectRoot: string;
  /** Lines that are no tasks, for a file that is not there. */
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

/** Texts in pieces that are written one after another. */
function* inPieces(texts: Iterable<string>): Generator<string> {
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length < pieceCharacters) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

const endedLines = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => `${line}\n`);

/** A file that is not there: what is no task, and all tasks by id. */
const newLayout = async (db: Database, others: readonly string[]): Promise<FileLayout> => {
  const next = db.prepare('select id from tasks where id > ? order by id limit ?');
  const lines: LayoutLine[] = others.map((text) => ({ text, end: '' }));
  for (let after = '', isLast = false; !isLast; ) {
    const rows = await db.ask(next.all(after, tasksPerRead));
    for (const { id } of rows) lines.push({ id: String(id), end: '' });
    after = String(rows.at(-1)?.['id'] ?? after);
    isLast = rows.length < tasksPerRead;
  }
  return { start: '', lines: [...lines, { text: '', end: '' }] };
};

const changedLayout = async (db: Database, file: string): Promise<FileLayout> => {
  const fresh = db.prepare("select id from tasks where base = '' order by position");
  const ids = (await db.ask(fresh.all())).map(({ id }) => String(id));
  return withNewTasks(await readLayout(file), ids);
};

/**
 * Writes all tasks in bd's form into the lines that the file has for them, so that a change is a
 * small difference in git.
 * @throws FileMovedError, UnsafeFileError, and what the disk says
 */
export const writeIssuesFile = async (db: Database, request: WriteRequest): Promise<Written> => {
  const { projectRoot, others, expected, isOurs, gives } = request;
  const file = issuesFileOf(projectRoot);
  const fresh = new Map<string, string>();
  const many = db.prepare(`select id, line, base from tasks where id in (${manyPlaces})`);
  // A task that changes while the next ones are read is written by the next export.
  async function* pieces(): AsyncGenerator<string> {
    const layout = await (expected === missing ? newLayout(db, others) : changedLayout(db, file));
    yield layout.start;
    let separator = '';
    for (const part of chunksOf(layout.lines, tasksPerRead)) {
      const ids = part.flatMap((line) => ('id' in line ? [line.id] : []));
      const texts = new Map<string, string>();
      for (const { id, line, base } of await db.ask(rowsOfMany(many, ids))) {
        texts.set(String(id), String(line));
        if (base !== null) fresh.set(String(id), String(line));
      }
      const written: string[] = [];
      for (const line of part) {
        const text = 'id' in line ? texts.get(line.id) : line.text;
        if (text === undefined) continue;
        written.push(`${separator}${text}${line.end}`);
        separator = '\n';
      }
      yield* inPieces(written);
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
  await writeFileAtomically(join(projectRoot, path), inPieces(endedLines(lines)), {
    mode: 0o600,
  });
  return path;
};
