import { atWork, type SupervisorContext } from '../../../machines/supervisor/supervisor-context.ts';
import { waitingOf } from '../../../machines/supervisor/waiting-queue.ts';
import { roles as allRoles, type Role } from '../../../machines/task.ts';
import { charts } from '../../journal/chart-versions.ts';
import type { SlotShare, StoreSharing, TakenTask } from '../../store/port.ts';
import type { SupervisorEvents } from './supervision.ts';

/** Hints between the servers of a store. A hint that is lost does no harm. */
export interface ServerNotices {
  tell(notice: string): void;
  on(listener: (notice: string) => void): void;
}

export interface SlotShareSettings {
  /** The agents of all servers, and of this one. */
  readonly cap: number;
  readonly pool: number;
  /** Null: all. */
  readonly roles: readonly Role[] | null;
}

export interface SlotSharePorts {
  readonly store: StoreSharing;
  readonly node: string;
  readonly notices: ServerNotices;
  readonly settings: () => SlotShareSettings;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

export interface SlotUsers {
  readonly supervisor: Pick<SupervisorEvents, 'snapshot' | 'onChange'>;
  /** Called when `slots()` has changed, which is the supervisor's cap. */
  readonly changed: () => void;
  /**
   * `takeUp` gets waiting tasks that this server took from another one, and resolves when they are
   * in its queue or at work; `drop` gets those that it lost.
   */
  readonly takeUp: (taskIds: readonly string[]) => Promise<void>;
  readonly drop: (taskIds: readonly string[]) => void;
}

/** The part of this server in the slots that all servers share, and in the waiting tasks. */
export interface SlotSharing {
  /** 0 before the start. */
  slots(): number;
  /** Called once. @throws StoreError */
  start(users: SlotUsers): Promise<void>;
  /** Asks for slots that a server which has ended had. */
  look(): void;
  stop(): Promise<void>;
}

const askPauseMs = 50;
/** While slots are lacking, whatever was told meanwhile. */
const lackingPauseMs = 10_000;
const storeAwayPauseMs = 1_000;
/** A notice names all that one look takes. */
const takenAtMost = 50;

interface Need {
  readonly running: number;
  readonly held: readonly string[];
  readonly needed: number;
  readonly waiting: number;
}

const needOf = (
  context: SupervisorContext,
  { roles, pool }: Pick<SlotShareSettings, 'roles' | 'pool'>,
): Need => {
  const running = atWork(context).length;
  const here = waitingOf(context.waiting, (role) => roles?.includes(role) ?? true);
  // More than the pool changes nothing for anybody, and would be told at each change.
  return {
    running,
    held: context.holding.map(({ taskId }) => taskId),
    needed: Math.max(running, Math.min(running + context.returning.length + here, pool)),
    waiting: Math.min(context.waiting.length, pool),
  };
};

/** `slots <node> <isLacking> <waiting>` */
const slotsNotice = (node: string, isLacking: boolean, waiting: number): string =>
  `slots ${node} ${isLacking ? 1 : 0} ${waiting}`;
/** PostgreSQL refuses a notice of 8,000 bytes. */
const noticeBytes = 7_000;
/** `taken <node> <task>,<task>`: a server took tasks that this node had. */
export const takenNotices = (taken: readonly TakenTask[]): readonly string[] => {
  const notices: string[] = [];
  for (const { taskId, from } of taken) {
    const start = `taken ${from} `;
    const at = notices.findLastIndex((notice) => notice.startsWith(start));
    const longer = `${notices[at] ?? start}${at < 0 ? '' : ','}${taskId}`;
    if (at < 0 || Buffer.byteLength(longer) > noticeBytes) notices.push(`${start}${taskId}`);
    else notices[at] = longer;
  }
  return notices;
};

/** Waiting tasks of other servers, for the room that this one has. @returns their ids */
const takeFromOthers = async (
  { store, node, notices, settings }: SlotSharePorts,
  room: number,
): Promise<readonly string[]> => {
  const limit = Math.min(takenAtMost, room);
  const taken = await store.takeWaiting(node, limit, {
    roles: settings().roles ?? allRoles,
    charts,
  });
  for (const notice of takenNotices(taken)) notices.tell(notice);
  return taken.map(({ taskId }) => taskId);
};

/**
 * The slots that the store has granted. The supervisor never has more: before slots are given back,
 * it loses them.
 */
const createGrant = (ports: SlotSharePorts & SlotUsers, isStopped: () => boolean) => {
  const { store, node, notices, supervisor, settings, takeUp } = ports;
  /** The supervisor may use as many; the store has granted at least that. */
  let usable = 0;
  let last: (SlotShare & Need) | null = null;
  /** Tasks that were taken from others and are not in the queue yet. */
  let arriving = 0;
  /** The needs of another server have changed. */
  let isTold = true;
  let isWanted = false;

  const need = (): Need => needOf(supervisor.snapshot().context, settings());
  const room = (): number => usable - need().needed - arriving;
  const fillRoom = async (): Promise<void> => {
    if (last === null || room() <= 0) return;
    const taken = await takeFromOthers(ports, room());
    // Until something is told: what waits there is not for this server.
    if (taken.length === 0) last = { ...last, othersWait: false };
    if (taken.length === 0 || isStopped()) return;
    arriving += taken.length;
    void takeUp(taken).finally(() => {
      arriving -= taken.length;
    });
  };
  const mayUse = (next: number): void => {
    if (next === usable) return;
    usable = next;
    ports.changed();
  };
  const tellOthers = (before: typeof last, { slots, foreign }: SlotShare, needs: Need): void => {
    const isSame =
      before?.slots === slots &&
      before.needed + before.foreign === needs.needed + foreign &&
      before.waiting === needs.waiting;
    if (isSame) return;
    const isLacking = Math.min(settings().pool, needs.needed + foreign) > slots;
    notices.tell(slotsNotice(node, isLacking, needs.waiting));
  };
  return {
    usable: () => usable,
    isNews: (): boolean => {
      const { running, needed, waiting } = need();
      if (last === null || isTold || waiting !== last.waiting) return true;
      const givesBack = isWanted && Math.max(running, usable) < last.slots;
      if (last.othersWait && room() > 0) return true;
      return givesBack || (needed !== last.needed && (needed > usable || last.needed > usable));
    },
    /** @throws StoreError */
    ask: async (): Promise<void> => {
      isTold = false;
      if (isWanted) mayUse(Math.min(usable, need().running));
      const needs = need();
      const { cap, pool, roles } = settings();
      const keep = Math.max(usable, needs.running);
      const { held, needed, waiting } = needs;
      const share = await store.share(node, {
        cap,
        pool,
        keep,
        held,
        needed,
        waiting,
        roles: roles ?? allRoles,
        charts,
      });
      const before = last;
      last = { ...share, ...needs };
      isWanted = share.isWanted;
      mayUse(share.aim);
      tellOthers(before, share, needs);
      if (share.othersWait) await fillRoom();
    },
    askAgain: () => {
      isTold = true;
    },
    isLacking: (): boolean => need().needed > usable,
    /** True when the needs of another server concern this one. */
    heard: (isLacking: boolean, waiting: number): boolean => {
      const { running, needed } = need();
      if (isLacking) isWanted = true;
      const concernsUs =
        (isLacking && (last?.slots ?? 0) > running) ||
        (waiting > 0 && (usable > needed || last?.othersChoose === true)) ||
        needed > usable;
      if (concernsUs) isTold = true;
      return concernsUs;
    },
  };
};

const shareWith = (ports: SlotSharePorts & SlotUsers) => {
  const { node, notices, supervisor, log } = ports;
  let timer: NodeJS.Timeout | undefined;
  let regular: NodeJS.Timeout | undefined;
  let asking: Promise<void> = Promise.resolve();
  let isStopped = true;
  const grant = createGrant(ports, () => isStopped);

  const lookIn = (ms: number): void => {
    if (isStopped || timer !== undefined) return;
    timer = setTimeout(() => {
      asking = look();
    }, ms);
    timer.unref();
  };
  const look = async (): Promise<void> => {
    let pause = askPauseMs;
    try {
      if (!isStopped && grant.isNews()) await grant.ask();
    } catch (error) {
      if (!isStopped) log('could not ask the store for slots; the server tries again', { error });
      grant.askAgain();
      pause = storeAwayPauseMs;
    }
    timer = undefined;
    if (grant.isNews()) lookIn(pause);
  };
  const askAgain = (): void => {
    grant.askAgain();
    lookIn(0);
  };
  notices.on((notice) => {
    const [kind, about = '', ...rest] = notice.split(' ');
    if (kind === 'taken' && about === node) ports.drop((rest[0] ?? '').split(','));
    if (kind !== 'slots' || about === node || isStopped) return;
    if (grant.heard(rest[0] === '1', Number(rest[1]))) lookIn(0);
  });
  supervisor.onChange(() => {
    if (!isStopped && grant.isNews()) lookIn(0);
  });

  return {
    slots: grant.usable,
    askAgain,
    begin: async (): Promise<void> => {
      isStopped = false;
      await grant.ask();
      lookIn(askPauseMs);
      regular = setInterval(() => {
        if (grant.isLacking()) askAgain();
      }, lackingPauseMs).unref();
    },
    stop: async (): Promise<void> => {
      isStopped = true;
      clearTimeout(timer);
      clearInterval(regular);
      await asking;
    },
  };
};

/**
 * Asks the store for slots when tasks wait, and gives back what others want. Takes waiting tasks of
 * other servers when this one has room.
 */
export const createSlotSharing = (ports: SlotSharePorts): SlotSharing => {
  let share: ReturnType<typeof shareWith> | null = null;
  return {
    slots: () => share?.slots() ?? 0,
    start: async (users) => {
      share = shareWith({ ...ports, ...users });
      await share.begin();
    },
    look: () => share?.askAgain(),
    stop: async () => share?.stop(),
  };
};
