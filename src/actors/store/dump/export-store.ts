import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { messageOf } from '../../../machines/message-of.ts';
import { StoreError } from '../port.ts';
import type { Database, Value, Work } from '../rows/rows.ts';

export interface DumpTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** By these its rows are read, each with a value before that of the first row. */
  readonly order: readonly (readonly [column: string, before: Value])[];
  /** No two rows have the same values in these. */
  readonly key: readonly string[];
  readonly rowsPerRead: number;
}

/** `key`: by default the columns of the order. */
const table = (
  name: string,
  columns: string,
  order: DumpTable['order'],
  key = order.map(([column]) => column),
  rowsPerRead = 200,
): DumpTable => ({ name, columns: columns.split(' '), order, key, rowsPerRead });

/** A row may have 7 MB. */
const imagesPerRead = 4;

/**
 * All rows of a store, without what each database makes of them by itself: positions, which follow
 * the order of the rows, and `task_counts`.
 */
export const dumpTables: readonly DumpTable[] = [
  table('journal', 'seq task_id task_seq attempt type at data cause base previous hash', [
    ['seq', -1],
  ]),
  table(
    'histories',
    'task_id last_hash last_task_seq base removed_seq removed_task_seq removed_hash removed_at removed_days removing',
    [['task_id', '']],
  ),
  table('counters', 'name value', [['name', '']]),
  table(
    'attempts',
    'task_id attempt role status ended_at seconds model_calls tool_calls input_tokens output_tokens cached_tokens cache_write_tokens cost_usd owner',
    [
      ['task_id', ''],
      ['attempt', -1],
    ],
  ),
  table(
    'usage_days',
    'day role attempts complete failed cancelled seconds model_calls tool_calls input_tokens output_tokens cached_tokens cache_write_tokens cost_usd',
    [
      ['day', ''],
      ['role', ''],
    ],
  ),
  table('spending', 'scope usd', [['scope', '']]),
  table(
    'actors',
    'id task_id version pending changed_at snapshot revision live_attempt owner waits_role waits_priority restores',
    [['id', '']],
  ),
  table(
    'steps',
    'task_id attempt key intent result',
    [['position', -1]],
    ['task_id', 'attempt', 'key'],
  ),
  table('requests', 'id task_id answer', [['id', '']]),
  table('delivery_cursors', 'webhook seq', [['webhook', '']]),
  table('push_configs', 'run id version url token scheme credentials sent', [
    ['run', ''],
    ['id', ''],
  ]),
  table(
    'images',
    'task_id attempt digest place name media_type bytes at data',
    [
      ['task_id', ''],
      ['attempt', -1],
      ['digest', ''],
    ],
    undefined,
    imagesPerRead,
  ),
  table('nodes', 'id last_commit stale lease_ms lease_until ended', [['id', '']]),
  table('tasks', 'id line base status done created_at unmet revision', [['position', -1]], ['id']),
  table('dependencies', 'task_id depends_on', [
    ['task_id', ''],
    ['depends_on', ''],
  ]),
  table('ledger', 'key value', [['key', '']]),
  table('tokens', 'name rights digest created_at expires_at', [['name', '']]),
  table('audit', 'seq id at name via address action task_id about outcome previous hash', [
    ['seq', -1],
  ]),
];

/** Gives every row as a line of JSON, in an order that is the same in every database. */
export const readTable = function* (
  db: Database,
  { name, columns, order, rowsPerRead }: DumpTable,
  take: (line: string) => void,
): Work<void> {
  const places = order.map(([column], at) => `${column} as order_${at}`);
  const keys = order.map(([column]) => column).join(', ');
  const next = db.prepare(
    `select ${[...columns, ...places].join(', ')} from ${name}
     where (${keys}) > (${order.map(() => '?').join(', ')}) order by ${keys} limit ${rowsPerRead}`,
  );
  let after = order.map(([, before]) => before);
  for (;;) {
    const rows = yield* next.all(...after);
    for (const row of rows) take(JSON.stringify(columns.map((column) => row[column] ?? null)));
    const last = rows.at(-1);
    if (last === undefined) return;
    after = order.map((_, at) => last[`order_${at}`] ?? null);
  }
};

/** Count and hash of the rows of a table, so that two copies can be compared. */
export interface TableDigest {
  readonly rows: number;
  /** Hexadecimal, of its rows as lines of JSON. */
  readonly sha256: string;
}

export const createDigest = () => {
  const hash = createHash('sha256');
  let rows = 0;
  return {
    add: (line: string): void => {
      hash.update(`${line}\n`);
      rows += 1;
    },
    end: (): TableDigest => ({ rows, sha256: hash.digest('hex') }),
  };
};

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
