import { atWork, type SupervisorContext } from '../../machines/supervisor-context.ts';
import { roles as allRoles, type Role } from '../../machines/task.ts';
import type { SlotShare, StoreSharing, TakenTask } from '../store/port.ts';
import type { Supervision } from './supervision.ts';

/** Tells all servers of a store something that they can also do without. */
export interface ServerNotices {
  tell(notice: string): void;
  on(listener: (notice: string) => void): void;
}

export interface SlotShareSettings {
  /** Of all servers, and of this one. */
  readonly cap: number;
  readonly pool: number;
  /** Null: all. */
  readonly roles: readonly Role[] | null;
}

export interface SlotSharePorts {
  readonly store: StoreSharing;
  readonly node: string;
  readonly notices: ServerNotices;
  readonly supervisor: Pick<Supervision, 'snapshot' | 'onChange'>;
  readonly settings: () => SlotShareSettings;
  /** The supervisor's cap is `slots()` from now on. */
  readonly changed: () => void;
  /** Another server's waiting tasks are this one's now, or the other way round. */
  readonly takeUp: (taskIds: readonly string[]) => void;
  readonly drop: (taskIds: readonly string[]) => void;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** The part of this server in the slots that all servers share, and in the waiting tasks. */
export interface SlotSharing {
  slots(): number;
  /** @throws StoreError */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Between two questions to the store. */
const pauseMs = 50;
const awayPauseMs = 1_000;
/** Of one look; a notice names them. */
const takenAtMost = 50;

interface Need {
  readonly running: number;
  readonly needed: number;
  readonly waiting: number;
}

const needOf = (
  context: SupervisorContext,
  { roles, pool }: Pick<SlotShareSettings, 'roles' | 'pool'>,
): Need => {
  const running = atWork(context).length;
  const here = context.waiting.filter(({ role }) => roles?.includes(role) ?? true).length;
  // More than the pool changes nothing for anybody, and would be told at each change.
  return {
    running,
    needed: Math.max(running, Math.min(running + context.returning.length + here, pool)),
    waiting: Math.min(context.waiting.length, pool),
  };
};

/** `slots <node> <isLacking> <waiting>` */
const slotsNotice = (node: string, isLacking: boolean, waiting: number): string =>
  `slots ${node} ${isLacking ? 1 : 0} ${waiting}`;
/** `taken <node> <task>,<task>`: a server took tasks that this node had. */
const takenNotice = (from: string, taken: readonly TakenTask[]): string =>
  `taken ${from} ${taken.flatMap((task) => (task.from === from ? [task.taskId] : [])).join(',')}`;

/**
 * Asks the store for slots when tasks wait, and gives back what others want. The supervisor never
 * has more than the store has granted: before slots are given back, it loses them. Takes waiting
 * tasks of other servers when this one has room.
 */
export const createSlotSharing = (ports: SlotSharePorts): SlotSharing => {
  const { store, node, notices, supervisor, settings, log } = ports;
  /** What the supervisor may use; the store has granted at least that. */
  let usable = 0;
  let last: (SlotShare & Need) | null = null;
  let timer: NodeJS.Timeout | undefined;
  let asking: Promise<void> = Promise.resolve();
  let isStopped = true;
  /** The needs of another server have changed. */
  let isTold = true;
  let isWanted = false;

  const need = (): Need => needOf(supervisor.snapshot().context, settings());
  const mayUse = (next: number): void => {
    if (next === usable) return;
    usable = next;
    ports.changed();
  };
  const isNews = ({ running, needed, waiting }: Need): boolean => {
    if (last === null || isTold || waiting !== last.waiting) return true;
    const givesBack = isWanted && Math.max(running, usable) < last.slots;
    return givesBack || (needed !== last.needed && (needed > usable || last.needed > usable));
  };
  const takeFromOthers = async (): Promise<void> => {
    const room = Math.min(takenAtMost, usable - need().needed);
    if (room <= 0) return;
    const taken = await store.takeWaiting(node, room, settings().roles ?? allRoles);
    for (const from of new Set(taken.map((task) => task.from)))
      notices.tell(takenNotice(from, taken));
    if (taken.length > 0 && !isStopped) ports.takeUp(taken.map(({ taskId }) => taskId));
  };
  const ask = async (): Promise<void> => {
    isTold = false;
    if (isWanted) mayUse(Math.min(usable, need().running));
    const needs = need();
    const { cap, pool } = settings();
    const keep = Math.max(usable, needs.running);
    const share = await store.share(node, {
      cap,
      pool,
      keep,
      needed: needs.needed,
      waiting: needs.waiting,
    });
    const before = last;
    last = { ...share, ...needs };
    isWanted = share.isWanted;
    mayUse(share.aim);
    const isLacking = Math.min(pool, needs.needed) > share.slots;
    if (
      before === null ||
      before.slots !== share.slots ||
      before.needed !== needs.needed ||
      before.waiting !== needs.waiting
    )
      notices.tell(slotsNotice(node, isLacking, needs.waiting));
    if (share.othersWait) await takeFromOthers();
  };
  const lookIn = (ms: number): void => {
    if (isStopped || timer !== undefined) return;
    timer = setTimeout(() => {
      asking = look();
    }, ms);
    timer.unref();
  };
  const look = async (): Promise<void> => {
    let pause = pauseMs;
    try {
      if (!isStopped && isNews(need())) await ask();
    } catch (error) {
      if (!isStopped)
        log('the slots of all servers could not be asked for; the server tries again', { error });
      isTold = true;
      pause = awayPauseMs;
    }
    timer = undefined;
    if (isNews(need())) lookIn(pause);
  };
  const heard = (from: string, isLacking: boolean, waiting: number): void => {
    if (isStopped || from === node) return;
    const { running, needed } = need();
    if (isLacking) isWanted = true;
    const concernsUs =
      (isLacking && (last?.slots ?? 0) > running) ||
      (waiting > 0 && usable > needed) ||
      needed > usable;
    if (!concernsUs) return;
    isTold = true;
    lookIn(0);
  };
  notices.on((notice) => {
    const [kind, about = '', ...rest] = notice.split(' ');
    if (kind === 'taken' && about === node) ports.drop((rest[0] ?? '').split(','));
    if (kind === 'slots') heard(about, rest[0] === '1', Number(rest[1]));
  });
  supervisor.onChange(() => {
    if (!isStopped && isNews(need())) lookIn(0);
  });

  return {
    slots: () => usable,
    start: async () => {
      isStopped = false;
      await ask();
      lookIn(pauseMs);
    },
    stop: async () => {
      isStopped = true;
      clearTimeout(timer);
      await asking;
    },
  };
};
