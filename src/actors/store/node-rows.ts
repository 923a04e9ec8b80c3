import { z } from 'zod';
import { dayMs } from '../../machines/milliseconds.ts';
import {
  type CommitId,
  type Lease,
  LeaseLostError,
  type NodeFacts,
  type StoreLeases,
  type StoreNode,
} from './port.ts';
import type { Database, Row, Work } from './rows.ts';

const staleSchema = z.array(z.number());
/** Afterwards a row says nothing that anybody asks. */
const endedMs = dayMs;

type Servers = Parameters<StoreLeases['takeOverFrom']>[1];

/** The lease and the last commit of each start of a server. Called inside the transaction. */
export interface NodeRows {
  join(lease: Lease): Work<void>;
  /** @throws LeaseLostError */
  renew(node: string): Work<void>;
  takeOverFrom(node: string, servers: Servers): Work<readonly string[]>;
  nodes(): Work<readonly StoreNode[]>;
  leave(node: string): Work<void>;
  /**
   * Positions of the changes that were stale when this commit was carried out; `all` when it is too
   * late; null when it is new. @throws LeaseLostError
   */
  staleOf(id: CommitId): Work<readonly number[] | 'all' | null>;
  /** Also renews the lease. */
  keep(id: CommitId, stale: readonly number[]): Work<void>;
}

const endedNodes = '(select id from nodes where ended = 1)';

const prepareNodes = (db: Database) => ({
  find: db.prepare('select last_commit, stale, ended from nodes where id = ?'),
  keep: db.prepare(
    `insert into nodes (id, last_commit, stale) values (?1, ?2, ?3)
     on conflict (id) do update set last_commit = excluded.last_commit, stale = excluded.stale,
       lease_until = ?4 + nodes.lease_ms`,
  ),
  forget: db.prepare('delete from nodes where ended = 1 and lease_until < ?'),
  endOwn: db.prepare(
    "update nodes set ended = 1 where id <> ?1 and ended = 0 and (cast(?2 as text) = '*' or name = ?2)",
  ),
  endOthers: db.prepare(
    'update nodes set ended = 1 where id <> ?1 and ended = 0 and lease_until <= ?2',
  ),
  liveOfEnded: db.prepare(
    `select count(*) as live from actors where owner in ${endedNodes} and live_attempt > 0`,
  ),
  ofEnded: db.prepare(`select id from actors where owner in ${endedNodes}`),
  takeOver: db.prepare(`update actors set owner = ?1 where owner in ${endedNodes}`),
  addSlots: db.prepare('update nodes set slots = slots + ?2 where id = ?1'),
  join: db.prepare(
    `insert into nodes (id, last_commit, stale, lease_ms, lease_until, name, joined, facts)
     values (?1, 0, '[]', ?2, ?3, ?4, ?5, ?6)
     on conflict (id) do update set lease_ms = excluded.lease_ms, lease_until = excluded.lease_until,
       name = excluded.name, joined = excluded.joined, facts = excluded.facts`,
  ),
  all: db.prepare('select * from nodes where ended = 0 and lease_ms > 0 order by joined, id'),
  leave: db.prepare(
    'update nodes set lease_until = 0, slots = 0, usable = 0, waiting = 0 where id = ?',
  ),
  renew: db.prepare('update nodes set lease_until = ?2 + lease_ms where id = ?1 and ended = 0'),
});

const nodeState = (leaseUntil: number, now: number): StoreNode['state'] =>
  leaseUntil > now ? 'live' : leaseUntil > 0 ? 'silent' : 'left';

const nodeOf =
  (now: number) =>
  (row: Row): StoreNode => ({
    node: String(row['id']),
    name: String(row['name']),
    state: nodeState(Number(row['lease_until']), now),
    leaseMs: Math.max(0, Number(row['lease_until']) - now),
    slots: Number(row['slots']),
    facts: row['facts'] == null ? null : (JSON.parse(String(row['facts'])) as NodeFacts),
  });

export const createNodeRows = (db: Database): NodeRows => {
  const sql = prepareNodes(db);
  /** Gives what ended servers had to this one. */
  const takeTasks = function* (node: string): Work<readonly string[]> {
    const live = Number((yield* sql.liveOfEnded.first())?.['live'] ?? 0);
    const tasks = (yield* sql.ofEnded.all()).map(({ id }) => String(id));
    if (tasks.length === 0) return tasks;
    yield* sql.takeOver.run(node);
    yield* sql.addSlots.run(node, live);
    return tasks;
  };
  return {
    *join({ node, name, leaseMs, facts }) {
      const now = yield* db.now();
      yield* sql.forget.run(now - endedMs);
      const shown = facts === undefined ? null : JSON.stringify(facts);
      yield* sql.join.run(node, leaseMs, now + leaseMs, name, now, shown);
      yield* sql.endOwn.run(node, name);
      yield* takeTasks(node);
    },
    *renew(node) {
      const { changes } = yield* sql.renew.run(node, yield* db.now());
      if (changes === 0) throw new LeaseLostError();
    },
    *takeOverFrom(node, servers) {
      if ((yield* sql.find.first(node))?.['ended'] === 1) throw new LeaseLostError();
      const { changes } = yield* sql.endOthers.run(node, servers === 'left' ? 0 : yield* db.now());
      return changes === 0 ? [] : yield* takeTasks(node);
    },
    *nodes() {
      return (yield* sql.all.all()).map(nodeOf(yield* db.now()));
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
