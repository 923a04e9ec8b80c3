import { z } from 'zod';
import type { Database } from './database.ts';
import type { CommitId } from './port.ts';

const staleSchema = z.array(z.number());

/** The last commit of each start of a server. Called inside the transaction. */
export interface NodeRows {
  /**
   * Positions of the changes that were stale when this commit was carried out; `all` when it is too
   * late; null when it is new.
   */
  staleOf(id: CommitId): readonly number[] | 'all' | null;
  keep(id: CommitId, stale: readonly number[]): void;
}

export const createNodeRows = (db: Database): NodeRows => {
  const find = db.prepare('select last_commit, stale from nodes where id = ?');
  const keep = db.prepare(
    `insert into nodes (id, last_commit, stale) values (?, ?, ?)
     on conflict (id) do update set last_commit = excluded.last_commit, stale = excluded.stale`,
  );
  return {
    staleOf: ({ node, number }) => {
      const row = find.first(node);
      const last = Number(row?.['last_commit'] ?? 0);
      if (number > last) return null;
      return number < last ? 'all' : staleSchema.parse(JSON.parse(String(row?.['stale'])));
    },
    keep: ({ node, number }, stale) => void keep.run(node, number, JSON.stringify(stale)),
  };
};
