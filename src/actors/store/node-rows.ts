import { z } from 'zod';
import { dayMs } from '../../machines/milliseconds.ts';
import { type CommitId, type Lease, LeaseLostError } from './port.ts';
import type { Database, Work } from './rows.ts';

const staleSchema = z.array(z.number());
/** Afterwards a row says nothing that anybody asks. */
const endedMs = dayMs;

/** The lease and the last commit of each start of a server. Called inside the transaction. */
export interface NodeRows {
  join(lease: Lease): Work<void>;
  /** @throws LeaseLostError */
  renew(node: string): Work<void>;
  live(): Work<readonly string[]>;
  leave(node: string): Work<void>;
  /**
   * Positions of the changes that were stale when this commit was carried out; `all` when it is too
   * late; null when it is new. @throws LeaseLostError
   */
  staleOf(id: CommitId): Work<readonly number[] | 'all' | null>;
  /** Also renews the lease. */
  keep(id: CommitId, stale: readonly number[]): Work<void>;
}

const prepareNodes = (db: Database) => ({
  find: db.prepare('select last_commit, stale, ended from nodes where id = ?'),
  keep: db.prepare(
    `insert into nodes (id, last_commit, stale) values (?1, ?2, ?3)
     on conflict (id) do update set last_commit = excluded.last_commit, stale = excluded.stale,
       lease_until = ?4 + nodes.lease_ms`,
  ),
  forget: db.prepare('delete from nodes where ended = 1 and lease_until < ?'),
  end: db.prepare(
    'update nodes set ended = 1 where id <> ?1 and ended = 0 and (cast(?2 as integer) = 1 or lease_until <= ?3)',
  ),
  takeOver: db.prepare(
    'update actors set owner = ?1 where owner in (select id from nodes where ended = 1)',
  ),
  join: db.prepare(
    `insert into nodes (id, last_commit, stale, lease_ms, lease_until) values (?1, 0, '[]', ?2, ?3)
     on conflict (id) do update set lease_ms = excluded.lease_ms, lease_until = excluded.lease_until`,
  ),
  live: db.prepare('select id from nodes where ended = 0 and lease_until > ? order by id'),
  leave: db.prepare('update nodes set lease_until = 0 where id = ?'),
  renew: db.prepare('update nodes set lease_until = ?2 + lease_ms where id = ?1 and ended = 0'),
});

export const createNodeRows = (db: Database): NodeRows => {
  const sql = prepareNodes(db);
  return {
    *join({ node, leaseMs, isAlone }) {
      const now = yield* db.now();
      yield* sql.forget.run(now - endedMs);
      yield* sql.end.run(node, isAlone ? 1 : 0, now);
      yield* sql.takeOver.run(node);
      yield* sql.join.run(node, leaseMs, now + leaseMs);
    },
    *renew(node) {
      const { changes } = yield* sql.renew.run(node, yield* db.now());
      if (changes === 0) throw new LeaseLostError();
    },
    *live() {
      return (yield* sql.live.all(yield* db.now())).map(({ id }) => String(id));
    },
    *leave(node) {
      yield* sql.leave.run(node);
    },
    *staleOf({ node, number }) {
      const row = yield* sql.find.first(node);
      if (row?.['ended'] === 1) throw new LeaseLostError();
      const last = Number(row?.['last_commit'] ?? 0);
      if (number > last) return null;
      return number < last ? 'all' : staleSchema.parse(JSON.parse(String(row?.['stale'])));
    },
    *keep({ node, number }, stale) {
      yield* sql.keep.send(node, number, JSON.stringify(stale), yield* db.now());
    },
  };
};
