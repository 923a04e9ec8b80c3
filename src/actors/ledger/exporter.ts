import { join } from 'node:path';
import { makeRealFolder } from '../files/real-folder.ts';
import { forgetHeldLines } from '../store/held-lines.ts';
import type { Answer } from '../store/port.ts';
import type { Database, Work } from '../store/rows.ts';
import { folderIdentity } from './folder-identity.ts';

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
 * So does one of the same name whose folder is another one, such as a new clone.
 */
export const createExporterRows = (
  db: Database,
  { name, chosen }: Pick<Exporter, 'name' | 'chosen'>,
  folder: string | null,
) => {
  const value = db.prepare('select value from ledger where key = ?');
  const set = db.prepare(
    `insert into ledger (key, value) values (?, ?)
     on conflict (key) do update set value = excluded.value`,
  );
  const forget = db.prepare("delete from ledger where key in ('file', 'others', 'waiting')");
  const textOf = function* (key: string): Work<string | null> {
    const row = yield* value.first(key);
    return row === null ? null : String(row['value']);
  };
  const isOurs = function* (): Work<boolean> {
    return (yield* textOf('export_node')) === name && (yield* textOf('export_folder')) === folder;
  };
  return {
    isOurs,
    *claim(): Work<boolean> {
      const before = yield* textOf('export_node');
      if (before !== name && (chosen === null ? before !== null : chosen !== name)) return false;
      const held = yield* textOf('export_folder');
      // An earlier version kept no folder.
      const isSame = before === name && (held ?? folder) === folder;
      yield* set.run('export_node', name);
      yield* set.run('export_folder', folder);
      if (before === null || isSame) return true;
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
export const createExporterCheck = (
  db: Database,
  exporter: Exporter | null,
  projectRoot: string,
) => {
  let isOurs: boolean | null = exporter === null ? true : null;
  let prepared: ReturnType<typeof createExporterRows> | null = null;
  const rowsOf = (given: Exporter): ReturnType<typeof createExporterRows> => {
    const folder = join(projectRoot, '.beads');
    if (prepared === null && given.claims) makeRealFolder(projectRoot, folder);
    prepared ??= createExporterRows(db, given, folderIdentity(folder));
    return prepared;
  };
  return {
    isOurs: async (): Promise<boolean> => {
      if (exporter !== null && isOurs === null) {
        const rows = rowsOf(exporter);
        isOurs = await (exporter.claims ? db.write(rows.claim) : db.ask(rows.isOurs()));
      }
      return isOurs === true;
    },
    /** As `Database.write`, of what is only true while the file is ours. @throws TakenOverError */
    write: <Result>(work: () => Work<Result>): Answer<Result> =>
      exporter === null
        ? db.write(work)
        : db.write(function* () {
            if (!(yield* rowsOf(exporter).isOurs())) throw new TakenOverError();
            return yield* work();
          }),
    isStillOurs: async (): Promise<boolean> => {
      if (exporter !== null && isOurs === true) isOurs = await db.ask(rowsOf(exporter).isOurs());
      return isOurs === true;
    },
  };
};
