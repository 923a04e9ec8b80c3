import type { Database } from '../store/database.ts';

/** A content of the file that cannot be taken. */
export interface WaitingImport {
  readonly stamp: string;
  readonly problem: string;
}

/**
 * Kept in the database, so that all processes of a project know the same of the file. `took`, `wait`
 * and `wrote` are called inside a transaction.
 */
export interface ExchangeState {
  /** Stamp of the content that the tables took or gave last; null before the first. */
  stamp(): string | null;
  others(): readonly string[];
  waiting(): WaitingImport | null;
  took(stamp: string, others: readonly string[]): void;
  wait(waiting: WaitingImport): void;
  /** True when the file lacks a change of the tables. */
  isBehind(): boolean;
  /** The file holds these lines now, by id. */
  wrote(lines: readonly (readonly [id: string, line: string])[]): void;
}

export const createExchangeState = (db: Database): ExchangeState => {
  const value = db.prepare('select value from ledger where key = ?');
  const set = db.prepare(
    'insert into ledger (key, value) values (?, ?) on conflict (key) do update set value = excluded.value',
  );
  const unset = db.prepare('delete from ledger where key = ?');
  const behind = db.prepare('select 1 as one from tasks where base is not null limit 1');
  const wrote = db.prepare(
    'update tasks set base = case when line = ?1 then null else ?1 end where id = ?2 and base is not null',
  );
  const textOf = (key: string): string | null => {
    const row = value.first(key);
    return row === null ? null : String(row['value']);
  };

  return {
    stamp: () => textOf('file'),
    others: () => JSON.parse(textOf('others') ?? '[]') as readonly string[],
    waiting: () => JSON.parse(textOf('waiting') ?? 'null') as WaitingImport | null,
    took: (stamp, others) => {
      set.run('file', stamp);
      set.run('others', JSON.stringify(others));
      unset.run('waiting');
    },
    wait: (waiting) => void set.run('waiting', JSON.stringify(waiting)),
    isBehind: () => behind.first() !== null,
    wrote: (lines) => {
      for (const [id, line] of lines) wrote.run(line, id);
    },
  };
};
