import { roles as allRoles } from '../../machines/task.ts';
import type { NodeFacts, NodeLoad, SlotShare, SlotWish, TakenTask } from './port.ts';
import type { Database, Row, Work } from './rows.ts';
import { isOfVersions, isUnowned } from './store-statements.ts';

/** The slots of all servers, and tasks that wait for one. Called inside the transaction. */
export interface SharedSlots {
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
export const slotsFor = (
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

/** What waits for a slot. */
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

export const createSharedSlots = (db: Database): SharedSlots => {
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
