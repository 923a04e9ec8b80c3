import type { Answer } from '../store/port.ts';
import { forgetFile } from '../store/rows/forget-file.ts';
import type { Database, Work } from '../store/rows/rows.ts';
import type { ExchangeState } from './exchange-state.ts';

/** A server, or a command, on tables that several of them use; each has a project folder of its own. */
export interface Exporter {
  /** The same at each start. */
  readonly name: string;
  /** The one that the configuration names; null: the first that comes. */
  readonly chosen: string | null;
  /** False for a command: the file is kept by a server. */
  readonly claims: boolean;
}

/**
 * One server of all keeps the tables and its `.beads/issues.jsonl` together. @returns whether this is
 * it. A server that is chosen takes it over: what its file lacks was never there, so nothing is deleted.
 */
export const createExporterRows = (
  db: Database,
  { name, chosen }: Pick<Exporter, 'name' | 'chosen'>,
) => {
  const current = db.prepare("select value from ledger where key = 'export_node'");
  const set = db.prepare(
    `insert into ledger (key, value) values ('export_node', ?)
     on conflict (key) do update set value = excluded.value`,
  );
  const live = db.prepare(
    'select 1 as one from nodes where name = ? and ended = 0 and lease_until > ?',
  );
  const nameNow = function* (): Work<string | null> {
    const row = yield* current.first();
    return row === null ? null : String(row['value']);
  };
  return {
    *isOurs(): Work<boolean> {
      return (yield* nameNow()) === name;
    },
    /** Another server that the file belongs to, while it does not run. */
    *absent(): Work<string | null> {
      const keeper = yield* nameNow();
      if (keeper === null || keeper === name) return null;
      return (yield* live.first(keeper, yield* db.now())) === null ? keeper : null;
    },
    *claim(): Work<boolean> {
      const before = yield* nameNow();
      if (before === name) return true;
      if (chosen === null ? before !== null : chosen !== name) return false;
      yield* set.run(name);
      if (before !== null) yield* forgetFile(db);
      return true;
    },
  };
};

/** Another server keeps the file since a moment ago. */
export class TakenOverError extends Error {
  override readonly name = 'TakenOverError';
}

/** Says to whom the file belongs. */
export interface ExporterCheck {
  /** Asks the tables once. */
  isOurs(): Promise<boolean>;
  /** Asks again before the file is read or written, and remembers the mark of the tables. */
  begin(): Promise<boolean>;
  /** The name of another server that the file belongs to, while it does not run. */
  absent(): Promise<string | null>;
  /** The mark of the tables since `begin`; null before the first. */
  mark(): string | null;
  /** As `Database.write`, while the tables have that mark. @throws TakenOverError */
  write<Result>(work: () => Work<Result>): Answer<Result>;
  /** As `write`, with work that gives the tables another mark and returns it. */
  writeMark(work: () => Work<string | null>): Promise<void>;
}

/** Without an exporter, the tables have one file. */
export const createExporterCheck = (
  db: Database,
  exporter: Exporter | null,
  state: Pick<ExchangeState, 'mark'>,
): ExporterCheck => {
  const rows = exporter === null ? null : createExporterRows(db, exporter);
  let isOurs: boolean | null = rows === null ? true : null;
  let mark: string | null = null;
  const write: ExporterCheck['write'] = (work) =>
    db.write(function* () {
      if ((yield* state.mark()) !== mark) throw new TakenOverError();
      return yield* work();
    });
  return {
    isOurs: async () => {
      if (rows !== null && isOurs === null)
        isOurs = await (exporter?.claims === true ? db.write(rows.claim) : db.ask(rows.isOurs()));
      return isOurs === true;
    },
    begin: async () => {
      if (isOurs !== true) return false;
      // Who takes the file over changes both; a mark that is read first is one of before.
      mark = await db.ask(state.mark());
      if (rows !== null) isOurs = await db.ask(rows.isOurs());
      return isOurs;
    },
    absent: async () => (rows === null ? null : db.ask(rows.absent())),
    mark: () => mark,
    write,
    writeMark: async (work) => {
      mark = await write(work);
    },
  };
};
