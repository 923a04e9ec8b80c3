import { z } from 'zod';
import { dayMs } from '../../machines/milliseconds.ts';
import type { Database } from './database.ts';
import { type CommitId, type Lease, LeaseLostError } from './port.ts';

const staleSchema = z.array(z.number());
/** Afterwards a row says nothing that anybody asks. */
const endedMs = dayMs;

/** The lease and the last commit of each start of a server. Called inside the transaction. */
export interface NodeRows {
  join(lease: Lease): void;
  /** @throws LeaseLostError */
  renew(node: string): void;
  /**
   * Positions of the changes that were stale when this commit was carried out; `all` when it is too
   * late; null when it is new. @throws LeaseLostError
   */
  staleOf(id: CommitId): readonly number[] | 'all' | null;
  /** Also renews the lease. */
  keep(id: CommitId, stale: readonly number[]): void;
}

const prepareNodes = (db: Database) => ({
  find: db.prepare('select last_commit, stale, ended from nodes where id = ?'),
  keep: db.prepare(
    `insert into nodes (id, last_commit, stale) values (?1, ?2, ?3)
     on conflict (id) do update set last_commit = excluded.last_commit, stale = excluded.stale,
       lease_until = ?4 + lease_ms`,
  ),
  forget: db.prepare('delete from nodes where ended = 1 and lease_until < ?'),
  end: db.prepare(
    'update nodes set ended = 1 where id <> ?1 and ended = 0 and (?2 = 1 or lease_until <= ?3)',
  ),
  takeOver: db.prepare(
    'update actors set owner = ?1 where owner in (select id from nodes where ended = 1)',
  ),
  join: db.prepare(
    `insert into nodes (id, last_commit, stale, lease_ms, lease_until) values (?1, 0, '[]', ?2, ?3)
     on conflict (id) do update set lease_ms = excluded.lease_ms, lease_until = excluded.lease_until`,
  ),
  renew: db.prepare('update nodes set lease_until = ?2 + lease_ms where id = ?1 and ended = 0'),
});

export const createNodeRows = (db: Database, now: () => number): NodeRows => {
  const sql = prepareNodes(db);
  return {
    join: ({ node, leaseMs, isAlone }) => {
      sql.forget.run(now() - endedMs);
      sql.end.run(node, isAlone ? 1 : 0, now());
      sql.takeOver.run(node);
      sql.join.run(node, leaseMs, now() + leaseMs);
    },
    renew: (node) => {
      if (sql.renew.run(node, now()).changes === 0) throw new LeaseLostError();
    },
    staleOf: ({ node, number }) => {
      const row = sql.find.first(node);
      if (row?.['ended'] === 1) throw new LeaseLostError();
      const last = Number(row?.['last_commit'] ?? 0);
      if (number > last) return null;
      return number < last ? 'all' : staleSchema.parse(JSON.parse(String(row?.['stale'])));
    },
    keep: ({ node, number }, stale) =>
      void sql.keep.run(node, number, JSON.stringify(stale), now()),
  };
};
