import { z } from 'zod';
import { dayMs } from '../../../machines/milliseconds.ts';
import {
  type ChartVersions,
  type CommitId,
  DatabaseGoneError,
  type Lease,
  LeaseLostError,
  type NodeFacts,
  type StoreLeases,
  type StoreNode,
  type UnownedActor,
} from '../port.ts';
import type { Database, Row, Work } from './rows.ts';
import { isOfVersions, isUnowned } from './store-statements.ts';

const staleSchema = z.array(z.number());
/** Afterwards a row says nothing that anybody asks. */
const endedMs = dayMs;

type Servers = Parameters<StoreLeases['takeOverFrom']>[1];

/** The lease and the last commit of each start of a server. Called inside the transaction. */
export interface NodeRows {
  join(lease: Lease): Work<void>;
  /** @throws LeaseLostError, DatabaseGoneError */
  renew(node: string, facts?: NodeFacts): Work<void>;
  takeOverFrom(node: string, servers: Servers, charts: ChartVersions): Work<readonly string[]>;
  withoutServer(limit: number): Work<readonly UnownedActor[]>;
  nodes(): Work<readonly StoreNode[]>;
  countRestores(node: string, taskIds: readonly string[]): Work<ReadonlyMap<string, number>>;
  leave(node: string): Work<void>;
  /**
   * Positions of the changes that were stale when this commit was carried out; `all` when it is too
   * late; null when it is new. @throws LeaseLostError, DatabaseGoneError
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
  endOwn: db.prepare(
    "update nodes set ended = 1 where id <> ?1 and ended = 0 and (cast(?2 as text) = '*' or name = ?2)",
  ),
  endOthers: db.prepare(
    'update nodes set ended = 1 where id <> ?1 and ended = 0 and lease_until <= ?2',
  ),
  release: db.prepare(
    `update actors set owner = null where owner in (select id from nodes where ended = 1)`,
  ),
  unowned: db.prepare(
    `select id, live_attempt from actors where ${isUnowned} and ${isOfVersions('?1', '?2')}`,
  ),
  take: db.prepare(
    `update actors set owner = ?3 where ${isUnowned} and ${isOfVersions('?1', '?2')}`,
  ),
  withoutServer: db.prepare(
    `select task_id, version from actors where ${isUnowned} order by id limit ?1`,
  ),
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
  countRestore: db.prepare(
    `update actors set restores = restores + 1 where id = ?1 and owner = ?2 and live_attempt > 0
     returning restores`,
  ),
  /** The next restore follows no crash. */
  leaveAttempts: db.prepare('update actors set restores = -1 where owner = ? and live_attempt > 0'),
  renew: db.prepare(
    `update nodes set lease_until = ?2 + lease_ms, facts = coalesce(?3, facts)
     where id = ?1 and ended = 0`,
  ),
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

/** Rows of servers that ended are removed in the end. */
const unknownServer = (): DatabaseGoneError =>
  new DatabaseGoneError(
    'the store does not know this server: it was restored to an earlier state, or another server took over long ago',
  );
const lostCommits = (): DatabaseGoneError =>
  new DatabaseGoneError(
    'the store lacks what this server has saved: it was restored to an earlier state',
  );

export const createNodeRows = (db: Database): NodeRows => {
  const sql = prepareNodes(db);
  /** Gives what no server has to this one. */
  const takeTasks = function* (node: string, charts: ChartVersions): Work<readonly string[]> {
    const { oldest, newest } = charts;
    const rows = yield* sql.unowned.all(oldest, newest);
    if (rows.length === 0) return [];
    yield* sql.take.run(oldest, newest, node);
    const live = rows.filter((row) => Number(row['live_attempt']) > 0).length;
    yield* sql.addSlots.run(node, live);
    return rows.map(({ id }) => String(id));
  };
  return {
    *join({ node, name, leaseMs, charts, facts }) {
      const now = yield* db.now();
      yield* sql.forget.run(now - endedMs);
      const shown = facts === undefined ? null : JSON.stringify(facts);
      yield* sql.join.run(node, leaseMs, now + leaseMs, name, now, shown);
      yield* sql.endOwn.run(node, name);
      yield* sql.release.run();
      yield* takeTasks(node, charts);
    },
    *renew(node, facts) {
      const shown = facts === undefined ? null : JSON.stringify(facts);
      const { changes } = yield* sql.renew.run(node, yield* db.now(), shown);
      if (changes > 0) return;
      throw (yield* sql.find.first(node)) === null ? unknownServer() : new LeaseLostError();
    },
    *takeOverFrom(node, servers, charts) {
      if ((yield* sql.find.first(node))?.['ended'] === 1) throw new LeaseLostError();
      const { changes } = yield* sql.endOthers.run(node, servers === 'left' ? 0 : yield* db.now());
      if (changes > 0) yield* sql.release.run();
      return yield* takeTasks(node, charts);
    },
    *withoutServer(limit) {
      const rows = yield* sql.withoutServer.all(limit);
      return rows.map((row) => ({
        taskId: String(row['task_id']),
        version: Number(row['version']),
      }));
    },
    *nodes() {
      return (yield* sql.all.all()).map(nodeOf(yield* db.now()));
    },
    *countRestores(node, taskIds) {
      const counts = new Map<string, number>();
      for (const id of taskIds) {
        const row = yield* sql.countRestore.first(id, node);
        if (row !== null) counts.set(id, Number(row['restores']));
      }
      return counts;
    },
    *leave(node) {
      yield* sql.leaveAttempts.run(node);
      yield* sql.leave.run(node);
    },
    *staleOf({ node, number, answered = 0 }) {
      const row = yield* sql.find.first(node);
      if (row?.['ended'] === 1) throw new LeaseLostError();
      if (row === null && answered > 0) throw unknownServer();
      const last = Number(row?.['last_commit'] ?? 0);
      if (last < answered) throw lostCommits();
      if (number > last) return null;
      return number < last ? 'all' : staleSchema.parse(JSON.parse(String(row?.['stale'])));
    },
    *keep({ node, number }, stale) {
      yield* sql.keep.send(node, number, JSON.stringify(stale), yield* db.now());
    },
  };
};
