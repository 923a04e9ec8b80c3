import { forgetHeldLines } from '../store/held-lines.ts';
import type { Answer } from '../store/port.ts';
import type { Database, Work } from '../store/rows.ts';

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
  const forget = db.prepare("delete from ledger where key in ('file', 'others', 'waiting')");
  const nameNow = function* (): Work<string | null> {
    const row = yield* current.first();
    return row === null ? null : String(row['value']);
  };
  return {
    *isOurs(): Work<boolean> {
      return (yield* nameNow()) === name;
    },
    *claim(): Work<boolean> {
      const before = yield* nameNow();
      if (before === name) return true;
      if (chosen === null ? before !== null : chosen !== name) return false;
      yield* set.run(name);
      if (before === null) return true;
      yield* forget.run();
      yield* forgetHeldLines(db);
      return true;
    },
  };
};

/** Another server keeps the file since a moment ago. */
export class TakenOverError extends Error {
  override readonly name = 'TakenOverError';
}

/**
 * Asks the tables once, and again before the file is written. Without an exporter, the tables have
 * one file.
 */
export const createExporterCheck = (db: Database, exporter: Exporter | null) => {
  const rows = exporter === null ? null : createExporterRows(db, exporter);
  let isOurs: boolean | null = rows === null ? true : null;
  return {
    isOurs: async (): Promise<boolean> => {
      if (rows !== null && isOurs === null)
        isOurs = await (exporter?.claims === true ? db.write(rows.claim) : db.ask(rows.isOurs()));
      return isOurs === true;
    },
    /** As `Database.write`, of what is only true while the file is ours. @throws TakenOverError */
    write: <Result>(work: () => Work<Result>): Answer<Result> =>
      rows === null
        ? db.write(work)
        : db.write(function* () {
            if (!(yield* rows.isOurs())) throw new TakenOverError();
            return yield* work();
          }),
    isStillOurs: async (): Promise<boolean> => {
      if (rows !== null && isOurs === true) isOurs = await db.ask(rows.isOurs());
      return isOurs === true;
    },
  };
};
