import { closeSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { z } from 'zod';
import { messageOf } from '../../../machines/message-of.ts';
import { plural } from '../../../machines/plural.ts';
import { StoreError } from '../port.ts';
import { forgetFile } from '../rows/forget-file.ts';
import type { Database, Value, Work } from '../rows/rows.ts';
import {
  createDigest,
  type DumpTable,
  dumpFormat,
  dumpTables,
  readTable,
  type StoreDigest,
  type TableDigest,
} from './export-store.ts';

const pieceBytes = 256 * 1024;

/** The lines of a file, read as they are taken; a last one that is cut off is left out. @throws what the disk says */
function* readLinesOf(path: string): Generator<string, void> {
  const file = openSync(path, 'r');
  try {
    const piece = Buffer.alloc(pieceBytes);
    const decoder = new StringDecoder('utf8');
    let rest = '';
    for (;;) {
      const bytes = readSync(file, piece);
      if (bytes === 0) break;
      const lines = (rest + decoder.write(piece.subarray(0, bytes))).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    closeSync(file);
  }
}

const headSchema = z.looseObject({ agent_store: z.number(), last_seq: z.number() });
const tableSchema = z.looseObject({ table: z.string(), columns: z.array(z.string()) });
const endSchema = z.looseObject({ end: z.string(), rows: z.number(), sha256: z.string() });
const rowSchema = z.array(z.union([z.string(), z.number(), z.null()]));

/** A statement takes as many rows; what is left over goes in smaller ones. */
const rowsPerInsert = [400, 20, 1] as const;
const mostRows = rowsPerInsert[0];
/** Rows that wait for their statement. */
const mostLetters = 4 * 1024 * 1024;

/** Inserts rows, several with one statement. @returns the place of the first that was there before */
const createInserts = (db: Database, { name, columns, key }: DumpTable) => {
  const places = `(${columns.map(() => '?').join(', ')})`;
  const insert = (count: number) =>
    db.prepare(
      `insert into ${name} (${columns.join(', ')}) values ${Array(count).fill(places).join(', ')}
       on conflict do nothing returning ${key.join(', ')}`,
    );
  const insertions = rowsPerInsert.map((count) => ({ count, insertion: insert(count) }));
  const at = key.map((column) => columns.indexOf(column));
  return function* (rows: readonly (readonly Value[])[]): Work<number | null> {
    const added = new Set<string>();
    let from = 0;
    for (const { count, insertion } of insertions)
      for (; rows.length - from >= count; from += count)
        for (const row of yield* insertion.all(...rows.slice(from, from + count).flat()))
          added.add(JSON.stringify(key.map((column) => row[column])));
    const found = rows.findIndex(
      (values) => !added.delete(JSON.stringify(at.map((n) => values[n]))),
    );
    return found < 0 ? null : found;
  };
};

const requireEmpty = function* (db: Database): Work<void> {
  const counts: number[] = [];
  for (const name of ['tasks', 'journal', 'actors'])
    counts.push(
      Number((yield* db.prepare(`select count(*) as count from ${name}`).first())?.['count']),
    );
  const [tasks = 0, entries = 0] = counts;
  if (counts.some((count) => count > 0))
    throw new StoreError(
      `the store is not empty: it has ${plural(tasks, 'task')} and ${plural(entries, 'journal entry', 'journal entries')}; import into an empty one, such as another schema (?schema=…), or remove this one first`,
    );
};

/** A server keeps in memory what it knows of its store. */
const requireNoServer = function* (db: Database): Work<void> {
  const live = db.prepare('select name from nodes where ended = 0 and lease_until > ? limit 1');
  const found = yield* live.first(yield* db.now());
  if (found !== null)
    throw new StoreError(
      `the server ${String(found['name'])} uses the store; stop it first (agent nodes names all), or wait until its lease is over if it was killed`,
    );
};

/** Reads the lines of a file in their order, and says what is wrong with it. */
const createDump = (path: string) => {
  const broken = (problem: string, cause?: unknown): StoreError =>
    new StoreError(`${path} cannot be imported: ${problem}`, { cause });
  const lines = readLinesOf(path);
  let count = 0;
  const next = (): string => {
    let line: IteratorResult<string, void>;
    try {
      line = lines.next();
    } catch (cause) {
      throw broken(messageOf(cause), cause);
    }
    if (line.done === true) throw broken('it ends too early; export the store again');
    count += 1;
    return line.value;
  };
  const parse = <Result>(schema: z.ZodType<Result>, line: string): Result => {
    try {
      return schema.parse(JSON.parse(line));
    } catch (cause) {
      throw broken('it is no export of a store, or it was changed', cause);
    }
  };
  return { broken, next, parse, line: () => count, close: () => void lines.return() };
};
type Dump = ReturnType<typeof createDump>;

const importTable = function* (db: Database, table: DumpTable, dump: Dump): Work<TableDigest> {
  const { broken, next, parse } = dump;
  const { name, columns, key } = table;
  const head = parse(tableSchema, next());
  if (head.table !== name || head.columns.join(' ') !== columns.join(' '))
    throw broken(`its table ${name} is of another version; export and import with one version`);
  const insert = createInserts(db, table);
  const given = createDigest();
  let rows: (readonly Value[])[] = [];
  let letters = 0;
  const insertRows = function* (): Work<void> {
    const twice = yield* insert(rows);
    if (twice !== null) {
      const which = key.map((column) => rows[twice]?.[columns.indexOf(column)]).join(' ');
      throw broken(
        `its line ${dump.line() - rows.length + twice} is a second row ${which} of ${name}; remove one of the two from the store that it is from, and export that again`,
      );
    }
    rows = [];
    letters = 0;
  };
  for (let line = next(); ; line = next()) {
    if (line.startsWith('{')) {
      yield* insertRows();
      const { end, rows: count, sha256 } = parse(endSchema, line);
      const digest = given.end();
      if (end !== name || count !== digest.rows || sha256 !== digest.sha256)
        throw broken(`the rows of ${name} are not as they were exported`);
      return digest;
    }
    if (rows.length === mostRows || letters >= mostLetters) yield* insertRows();
    given.add(line);
    letters += line.length;
    rows.push(parse(rowSchema.length(columns.length), line));
  }
};

/** Reads the rows again. */
const verifyTable = function* (db: Database, table: DumpTable, wanted: TableDigest): Work<void> {
  const found = createDigest();
  yield* readTable(db, table, found.add);
  const { rows, sha256 } = found.end();
  if (rows !== wanted.rows || sha256 !== wanted.sha256)
    throw new StoreError(
      `the table ${table.name} has ${plural(rows, 'row')} of ${wanted.rows}, or not the same ones; nothing was imported`,
    );
};

/** The number of the last entry, which may have been removed. */
const setJournalEnd = function* (db: Database, lastSeq: number): Work<void> {
  const last = yield* db.prepare('select coalesce(max(seq), 0) as seq from journal').first();
  if (Number(last?.['seq']) < lastSeq) {
    const insert = `insert into journal (seq, task_id, attempt, type, at, data, task_seq)
      values (?, '', 0, '', 0, '', 0)`;
    yield* db.prepare(insert).run(lastSeq);
    yield* db.prepare('delete from journal where seq = ?').run(lastSeq);
  }
  yield* db.added(lastSeq);
};

/**
 * Takes the rows of an export into an empty store, all or nothing, and compares them with the file
 * before they stay. The server that they are from has stopped. Rejects with a StoreError.
 */
export const importStore = async (db: Database, path: string): Promise<StoreDigest> => {
  const dump = createDump(path);
  const takeAll = function* (): Work<StoreDigest> {
    yield* requireEmpty(db);
    yield* requireNoServer(db);
    yield* db.mayPause();
    for (const { name } of dumpTables) yield* db.prepare(`delete from ${name}`).run();
    const head = dump.parse(headSchema, dump.next());
    if (head.agent_store !== dumpFormat)
      throw dump.broken(`it is of format ${head.agent_store}; this version reads ${dumpFormat}`);
    const digests: Record<string, TableDigest> = {};
    for (const table of dumpTables) digests[table.name] = yield* importTable(db, table, dump);
    if (dump.parse(z.looseObject({ end: z.string() }), dump.next()).end !== 'store')
      throw dump.broken('it has another end than an export');
    yield* setJournalEnd(db, head.last_seq);
    for (const table of dumpTables) {
      const wanted = digests[table.name];
      if (wanted !== undefined) yield* verifyTable(db, table, wanted);
    }
    yield* db.prepare('update nodes set lease_until = 0').run();
    yield* db.prepare("delete from ledger where key = 'export_node'").run();
    // The project that the store is for now may have an older file.
    yield* forgetFile(db);
    return digests;
  };
  try {
    return await db.write(takeAll);
  } finally {
    dump.close();
  }
};
