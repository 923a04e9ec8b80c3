import { roles as allRoles } from '../../machines/task.ts';
import { createEntryFeed } from './entry-feed.ts';
import type {
  Committed,
  EndedAt,
  Entry,
  NodeFacts,
  NodeLoad,
  ReadOptions,
  RememberedRequest,
  RemovedHistory,
  SavedActor,
  SlotShare,
  SlotWish,
  Step,
  Store,
  TakenTask,
} from './port.ts';
import { createImages } from './rows/image-rows.ts';
import { createEntryReader } from './rows/journal-rows.ts';
import {
  afterAnswer,
  type Database,
  type Row,
  rowsOfMany,
  type Statement,
  type Value,
  type Work,
} from './rows/rows.ts';
import {
  isOfVersions,
  isUnowned,
  lazy,
  prepareStatements,
  type StoreStatements,
} from './rows/store-statements.ts';
import { keptEntryOf, textOrNull } from './rows/stored-entry.ts';
import { createUsageRows, type UsageRows } from './rows/usage-rows.ts';
import { createChangeWriter, type EditRows } from './rows/write-changes.ts';

/** The slots of all servers, and tasks that wait for one. Called inside the transaction. */
interface SharedSlots {
  loads(): Work<readonly NodeLoad[]>;
  share(node: string, wish: SlotWish): Work<SlotShare>;
  takeWaiting(
    node: string,
    limit: number,
    able: Pick<SlotWish, 'roles' | 'charts'>,
  ): Work<readonly TakenTask[]>;
}

interface Other {
  readonly node: string;
  readonly isLive: boolean;
  readonly waiting: number;
  /** Null: all. */
  readonly roles: readonly string[] | null;
  readonly slots: number;
  /** As many as its tasks need and its pool has. */
  readonly usable: number;
}

const lacksSlots = ({
  isLive,
  slots,
  usable,
}: Pick<Other, 'isLive' | 'slots' | 'usable'>): boolean => isLive && usable > slots;

/**
 * The slots that a server may use: those that it needs, and its part of the cap while nobody else
 * lacks a slot. A server that died keeps its slots until another one takes over from it; attempts that
 * no server has keep theirs (`unowned`), and so do those that this one was given and has yet to take up
 * (`given`).
 */
const slotsFor = (
  { cap, pool, keep, needed }: Pick<SlotWish, 'cap' | 'pool' | 'keep' | 'needed'>,
  others: readonly Pick<Other, 'isLive' | 'slots' | 'usable'>[],
  { unowned, given }: { readonly unowned: number; readonly given: number },
): Pick<SlotShare, 'slots' | 'aim'> => {
  const live = others.filter(({ isLive }) => isLive).length;
  const part = Math.max(1, Math.floor(cap / (live + 1)));
  const goal = others.some(lacksSlots) ? Math.min(needed, part) : Math.max(needed, part);
  const left = cap - unowned - others.reduce((sum, { slots }) => sum + slots, 0);
  const all = Math.max(0, Math.min(pool, goal, left));
  return { slots: Math.max(keep + given, all), aim: Math.max(0, all - given) };
};

const otherOf = (row: Row, now: number): Other => {
  const facts = row['facts'] == null ? null : (JSON.parse(String(row['facts'])) as NodeFacts);
  return {
    node: String(row['id']),
    isLive: Number(row['lease_until']) > now,
    slots: Number(row['slots']),
    usable: Number(row['usable']),
    waiting: Number(row['waiting']),
    roles: facts?.roles ?? null,
  };
};

/**
 * The first waiting tasks of each of the roles, at most `?1` of a role. One part for each role: the
 * index `actors_waiting_by_role` has them in order.
 */
const firstOfRoles = (owner: string): string =>
  allRoles
    .map(
      (role, n) =>
        `select * from (select id, owner, waits_priority, changed_at from actors
          where ${owner} and waits_role = ?${n + 4} and ${isOfVersions('?2', '?3')}
          order by waits_priority, changed_at, id limit ?1) as ${role.replace('-', '_')}s`,
    )
    .join(' union all ');

/** A role that is not among these has no tasks. */
const roleValues = (roles: readonly string[]): readonly string[] =>
  allRoles.map((role) => (roles.includes(role) ? role : ''));

const inOrder = (one: Row, other: Row): number =>
  Number(one['waits_priority']) - Number(other['waits_priority']) ||
  Number(one['changed_at']) - Number(other['changed_at']) ||
  (String(one['id']) < String(other['id']) ? -1 : 1);

/** Tasks that wait for a slot. */
const createWaitingRows = (db: Database) => {
  const isServers = `owner = ?${allRoles.length + 4}`;
  const ofServer = db.prepare(firstOfRoles(isServers));
  const ofNobody = db.prepare(firstOfRoles('owner is null'));
  const count = db.prepare(`select count(*) as count from (${firstOfRoles(isServers)}) as found`);
  return {
    /** The most urgent of these servers and of none. */
    *first(
      limit: number,
      servers: readonly string[],
      { roles, charts: { oldest, newest } }: Pick<SlotWish, 'roles' | 'charts'>,
    ): Work<readonly Row[]> {
      const values = roleValues(roles);
      const rows = [...(yield* ofNobody.all(limit, oldest, newest, ...values))];
      for (const server of servers)
        rows.push(...(yield* ofServer.all(limit, oldest, newest, ...values, server)));
      return rows.toSorted(inOrder).slice(0, limit);
    },
    /** At most `limit` of each role. */
    *count(
      limit: number,
      server: string,
      { roles, charts: { oldest, newest } }: Pick<SlotWish, 'roles' | 'charts'>,
    ): Work<number> {
      const row = yield* count.first(limit, oldest, newest, ...roleValues(roles), server);
      return Number(row?.['count'] ?? 0);
    },
  };
};

const createSharedSlots = (db: Database): SharedSlots => {
  const others = db.prepare('select * from nodes where ended = 0 and id <> ?');
  const keep = db.prepare(
    'update nodes set slots = ?2, usable = ?3, waiting = ?4 where id = ?1 and ended = 0',
  );
  const waiting = createWaitingRows(db);
  const unownedAtWork = db.prepare(
    `select count(*) as count from actors where ${isUnowned} and live_attempt > 0`,
  );
  const ownAtWork = db.prepare('select id from actors where owner = ? and live_attempt > 0');
  const take = db.prepare('update actors set owner = ?2, revision = revision + 1 where id = ?1');
  const loads = db.prepare(
    `select owner, sum(running) as running, sum(waiting) as waiting from (
       select owner, count(*) as running, 0 as waiting from actors
         where live_attempt > 0 and owner is not null group by owner
       union all select owner, 0 as running, count(*) as waiting from actors
         where waits_role is not null and owner is not null group by owner
     ) as loads group by owner`,
  );
  return {
    *loads() {
      return (yield* loads.all()).map((row) => ({
        node: String(row['owner']),
        running: Number(row['running']),
        waiting: Number(row['waiting']),
      }));
    },
    *share(node, wish) {
      const now = yield* db.now();
      const all = (yield* others.all(node)).map((row) => otherOf(row, now));
      let foreign = 0;
      for (const { node: other, waiting: count, roles } of all) {
        if (count === 0 || roles === null) continue;
        const mine = wish.roles.filter((role) => !roles.includes(role));
        foreign += yield* waiting.count(wish.pool, other, { ...wish, roles: mine });
      }
      const held = new Set(wish.held);
      const given = (yield* ownAtWork.all(node)).filter(({ id }) => !held.has(String(id))).length;
      const needed = wish.needed + foreign + given;
      const unowned = Number((yield* unownedAtWork.first())?.['count'] ?? 0);
      const { slots, aim } = slotsFor({ ...wish, needed }, all, { unowned, given });
      const usable = Math.min(wish.pool, needed);
      yield* keep.run(node, slots, usable, wish.waiting);
      return {
        slots,
        aim,
        isWanted: all.some(lacksSlots),
        othersWait: all.some((other) => other.waiting > 0),
        othersChoose: all.some(({ roles }) => roles !== null),
        foreign,
      };
    },
    *takeWaiting(node, limit, able) {
      const taken: TakenTask[] = [];
      const all = yield* others.all(node);
      const servers = all
        .filter(({ waiting: count }) => Number(count) > 0)
        .map(({ id }) => String(id));
      for (const { id, owner } of yield* waiting.first(limit, servers, able)) {
        yield* take.run(String(id), node);
        taken.push({ taskId: String(id), from: owner === null ? '' : String(owner) });
      }
      return taken;
    },
  };
};

const textOfColumn = (row: Row, column: string): string => String(row[column] ?? '');

const actorOf = (row: Row): SavedActor => ({
  id: textOfColumn(row, 'id'),
  taskId: textOfColumn(row, 'task_id'),
  version: Number(row['version']),
  pending: Number(row['pending']) === 1,
  changedAt: Number(row['changed_at']),
  snapshot: textOfColumn(row, 'snapshot'),
  revision: Number(row['revision'] ?? 0),
  owner: row['owner'] == null ? null : textOfColumn(row, 'owner'),
  restores: Number(row['restores'] ?? 0),
  ...(row['waits_role'] == null
    ? {}
    : { waits: { role: String(row['waits_role']), priority: Number(row['waits_priority']) } }),
});

const stepOf = (row: Row): Step => ({
  taskId: textOfColumn(row, 'task_id'),
  attempt: Number(row['attempt']),
  key: textOfColumn(row, 'key'),
  intent: textOfColumn(row, 'intent'),
  result: row['result'] === null ? null : textOfColumn(row, 'result'),
});

const removedOf = (row: Row): RemovedHistory => ({
  seq: Number(row['removed_seq']),
  at: Number(row['removed_at']),
  days: Number(row['removed_days']),
});

export interface RowStoreOptions {
  /** Removes secrets from every text. */
  readonly redact: (text: string) => string;
  /** Absent where no change holds one. */
  readonly tasks?: EditRows;
}

/** What a process knows of the journal without asking. */
export interface JournalEnd {
  lastSeq(): number;
  /** Entries up to this one were read. */
  reached?(seq: number): void;
  /** Calls the listener after other programs have committed, where the database tells it. */
  onCommitOfOthers?(listener: (lastSeq: number) => void): void;
}

/** A place before the newest of the actors that are over. */
const firstEnd: EndedAt = { id: '', changedAt: Number.MAX_SAFE_INTEGER };

const createRowReads = (database: Database, sql: StoreStatements, usageRows: () => UsageRows) => {
  const entriesOf = createEntryReader(database);
  const savedActor = function* (id: string): Work<SavedActor | null> {
    const row = yield* sql.actor.first(id);
    return row === null ? null : actorOf(row);
  };
  const actorsOf = function* (
    statement: Statement,
    ...values: readonly Value[]
  ): Work<readonly SavedActor[]> {
    return (yield* statement.all(...values)).map(actorOf);
  };
  const readRows = ({ taskId, after, limit }: ReadOptions): Work<readonly Row[]> =>
    taskId === undefined ? sql.readAll.all(after, limit) : sql.readTask.all(taskId, after, limit);
  const entriesIn = function* (rows: Work<readonly Row[]>): Work<readonly Entry[]> {
    return yield* entriesOf(yield* rows);
  };
  const removed = function* (taskId: string | null): Work<RemovedHistory | null> {
    if (!(yield* database.has('histories', 'removed_seq'))) return null;
    const found = taskId === null ? sql.lastRemoved().first() : sql.removedOf().first(taskId);
    const row = yield* found;
    return row === null ? null : removedOf(row);
  };
  const request = function* (id: string): Work<RememberedRequest | null> {
    const row = yield* sql.request.first(id);
    return row === null
      ? null
      : { taskId: textOfColumn(row, 'task_id'), answer: textOrNull(row, 'answer') };
  };
  /** A journal of version 2.1 that is only read keeps none. */
  const usageOf = function* <Result>(
    work: (rows: UsageRows) => Work<readonly Result[]>,
  ): Work<readonly Result[]> {
    return (yield* database.has('usage_days', 'day')) ? yield* work(usageRows()) : [];
  };
  return { savedActor, actorsOf, entriesIn, readRows, removed, request, usageOf };
};

/** Journal, actor states, steps and requests in the tables of a database. */
export const createRowStore = (
  database: Database,
  { redact, tasks: edits }: RowStoreOptions,
  end: JournalEnd,
): Store => {
  const sql = prepareStatements(database);
  const usageRows = lazy(() => createUsageRows(database));
  const writer = createChangeWriter(database, sql, { redact, edits, usageRows });
  const slots = lazy(() => createSharedSlots(database));
  const { ask } = database;

  const reads = createRowReads(database, sql, usageRows);
  const { savedActor, actorsOf, entriesIn, readRows, removed, request, usageOf } = reads;

  const feed = createEntryFeed(
    (taskId, after, limit) =>
      afterAnswer(
        ask(entriesIn(readRows({ taskId: taskId ?? undefined, after, limit }))),
        (entries) => {
          end.reached?.(entries.at(-1)?.seq ?? 0);
          return entries;
        },
      ),
    end.lastSeq,
  );
  end.onCommitOfOthers?.(feed.committedElsewhere);
  const shown = (committed: Committed): Committed => {
    feed.committed(committed.entries);
    return committed;
  };

  return {
    images: createImages(database),
    commit: (...changes) =>
      afterAnswer(
        database.write(() => writer.write(changes)),
        shown,
      ),
    join: (lease) => database.write(() => writer.nodes().join(lease)),
    renew: (node, facts) => database.write(() => writer.nodes().renew(node, facts)),
    takeOverFrom: (node, servers, charts) =>
      database.write(() => writer.nodes().takeOverFrom(node, servers, charts)),
    withoutServer: (limit) => ask(writer.nodes().withoutServer(limit)),
    nodes: () => ask(writer.nodes().nodes()),
    loads: () => ask(slots().loads()),
    share: (node, wish) => database.write(() => slots().share(node, wish)),
    takeWaiting: (node, limit, able) =>
      database.write(() => slots().takeWaiting(node, limit, able)),
    countRestores: (node, taskIds) =>
      database.write(() => writer.nodes().countRestores(node, taskIds)),
    forgetRestores: (taskId) =>
      database.write(function* () {
        yield* sql.forgetRestores().run(taskId);
      }),
    leave: (node) => database.write(() => writer.nodes().leave(node)),
    takeOver: (id) => ask(savedActor(id)),
    subscribe: feed.subscribe,
    read: (options) => ask(entriesIn(readRows(options))),
    kept: (options) => afterAnswer(ask(readRows(options)), (rows) => rows.map(keptEntryOf)),
    latest: (taskId, type) =>
      afterAnswer(ask(entriesIn(sql.latest.all(taskId, type))), ([entry = null]) => entry),
    decisions: (limit) => ask(entriesIn(sql.decisions.all(limit))),
    latestOfPending: (type) =>
      afterAnswer(ask(sql.latestOfPending.all(type)), (rows) =>
        rows.map((row) => Number(row['latest'])),
      ),
    lastSeq: () => ask(database.lastSeq()),
    removed: (taskId) => ask(removed(taskId)),
    actor: (id) => ask(savedActor(id)),
    actors: (ids) => afterAnswer(ask(rowsOfMany(sql.actorsOf, ids)), (rows) => rows.map(actorOf)),
    steps: (taskId, attempt) =>
      afterAnswer(ask(sql.steps.all(taskId, attempt)), (rows) => rows.map(stepOf)),
    openHosted: (kind) => ask(actorsOf(sql.openHosted(), kind)),
    endedWorkflows: (limit, { id, changedAt } = firstEnd) =>
      ask(actorsOf(sql.endedWorkflows(), changedAt, id, limit)),
    tasks: (filter) => ask(actorsOf(filter === 'all' ? sql.tasks : sql.pending)),
    pendingCount: () => afterAnswer(ask(sql.pendingCount.first()), (row) => Number(row?.['count'])),
    pendingOf: (node) =>
      afterAnswer(ask(sql.pendingOf().all(node)), (rows) =>
        rows.map((row) => textOfColumn(row, 'id')),
      ),
    request: (id) => ask(request(id)),
    counters: () => ask(writer.counters()),
    usage: (since) => ask(usageOf((rows) => rows.days(since))),
    spent: (day, run) => ask(writer.spending().read(day, run)),
    attempts: (taskId) => ask(usageOf((rows) => rows.attempts(taskId))),
    rememberAnswer: (requestId, taskId, answer) =>
      database.write(function* () {
        const kept = yield* sql.answer.first(requestId, taskId, redact(answer));
        return textOfColumn(kept ?? {}, 'answer');
      }),
    check: database.check,
    close: () => {
      feed.close();
      database.close();
    },
  };
};
