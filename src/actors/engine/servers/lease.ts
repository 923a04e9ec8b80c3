import { charts } from '../../journal/chart-versions.ts';
import {
  DatabaseGoneError,
  LeaseLostError,
  LeaseOverError,
  type NodeFacts,
  type StoreError,
  type StoreLeases,
} from '../../store/port.ts';

/** Rejects when the store is away: it looks again soon. */
type TakeUp = () => Promise<void>;

export interface LeaseKeeper {
  /**
   * Takes over the tasks of earlier servers. `taken` is called at each later look: the store may
   * have given this server tasks of one that has ended. @throws StoreError
   */
  start(taken: TakeUp): Promise<void>;
  /** Looks for ended servers now, since one has left. */
  look(): void;
  /** True for the one of all live servers that joined first, and for one that is alone. */
  isFirst(): boolean;
  /** This server is about to end: tasks of others are for those that stay. */
  takeNoMore(): void;
  stop(): Promise<void>;
}

/** This server among those that share a store. */
export interface SharedLease {
  /** The same at each start of this server, which holds its lock: earlier starts are over. */
  readonly name: string;
  readonly facts: NodeFacts;
  /** The listener hears at once when the database is not the one that this server wrote. */
  readonly onDatabaseLost: (listener: (error: StoreError) => void) => void;
}

export interface LeaseKeeperPorts {
  readonly store: StoreLeases;
  readonly node: string;
  readonly leaseMs: number;
  /** Absent: the project's lock says that no other server runs. */
  readonly shared?: SharedLease;
  /** Nothing of this server is saved any more. */
  readonly onLost: (error: StoreError) => void;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Time after the end of a lease until it is looked at. */
const graceMs = 20;

/**
 * Looks for servers that have left or whose lease is over, and takes over from them. Where the
 * store was away, nobody could renew a lease: they are judged after a whole lease in which this
 * server could.
 */
const createTakeOver = ({ store, node, leaseMs, log }: LeaseKeeperPorts) => {
  let taken: TakeUp = async () => {};
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let isLooking = false;
  let isToldMeanwhile = false;
  let isFirst = false;
  let steadySince: number | null = null;

  const lookIn = (ms: number): void => {
    clearTimeout(timer);
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(() => void look(), ms + graceMs).unref();
  };
  /** @returns when to look again (ms) */
  const takeOver = async (takeUp: TakeUp): Promise<number> => {
    const steadyMs = steadySince === null ? 0 : performance.now() - steadySince;
    const nodes = await store.nodes();
    isFirst = nodes.find(({ state }) => state === 'live')?.node === node;
    const others = nodes.filter((other) => other.node !== node);
    const mayJudge = steadyMs >= leaseMs;
    const tasks = await store.takeOverFrom(node, mayJudge ? 'leftOrSilent' : 'left', charts);
    const isAny = others.some(({ state }) => state === 'left' || (mayJudge && state === 'silent'));
    if (isAny || tasks.length > 0)
      log('took over from a server that has ended', { tasks: tasks.length });
    if (!isStopped) await takeUp();
    const ends = others.flatMap((other) => (other.state === 'live' ? [other.leaseMs] : []));
    const silent = others.some(({ state }) => state === 'silent') && !mayJudge;
    return Math.min(leaseMs, ...ends, ...(silent ? [leaseMs - steadyMs] : []));
  };
  const look = async (): Promise<void> => {
    isLooking = true;
    isToldMeanwhile = false;
    // The renewal says what is wrong.
    const nextMs = await takeOver(taken).catch(() => leaseMs / 3);
    isLooking = false;
    lookIn(isToldMeanwhile ? 0 : nextMs);
  };
  return {
    /** The caller restores what this server has then. */
    begin: async (takeUp: TakeUp) => {
      taken = takeUp;
      lookIn(await takeOver(async () => {}));
    },
    look: () => {
      isToldMeanwhile = true;
      if (!isLooking) lookIn(0);
    },
    isFirst: () => isFirst,
    renewed: () => {
      steadySince ??= performance.now();
    },
    notRenewed: () => {
      steadySince = null;
    },
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
};

/** The longest time to end before the lease is over. */
const mostEndMs = 5_000;
/** In which a server that was paused is told whether it still has its lease. */
const afterPauseMs = 2_000;

/** Calls `over` at a time of `performance.now()`, whatever waits for an answer then. */
const createDeadline = (over: () => void) => {
  let timer: NodeJS.Timeout | undefined;
  const moveTo = (at: number): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const wasPaused = performance.now() - at > afterPauseMs;
      if (wasPaused) moveTo(performance.now() + afterPauseMs);
      else over();
    }, at - performance.now()).unref();
  };
  return { moveTo, stop: () => clearTimeout(timer) };
};

/**
 * Renews it by one row three times in its time, however many tasks there are. A server that was
 * paused for longer goes on, unless another one has taken over or the database is gone. One that
 * shares its store ends when it could not renew for nearly the whole time.
 */
export const createLeaseKeeper = (ports: LeaseKeeperPorts): LeaseKeeper => {
  const { store, node, leaseMs, shared, onLost, log } = ports;
  const takeOver = shared === undefined ? null : createTakeOver(ports);
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let renewedAt: number | null = null;
  let isDraining = false;
  const end = (error: StoreError): void => {
    if (isStopped) return;
    stop();
    log('nothing can be saved any more; this server ends', { node, error });
    onLost(error);
  };
  const deadline = createDeadline(() => end(new LeaseOverError(leaseMs)));
  const stop = (): void => {
    isStopped = true;
    clearTimeout(timer);
    deadline.stop();
    takeOver?.stop();
  };
  shared?.onDatabaseLost(end);
  const renewIn = (ms: number): void => {
    if (!isStopped) timer = setTimeout(() => void renew(), ms).unref();
  };
  const renewed = (at: number): void => {
    if (isStopped) return;
    // This server, or the store, was away for so long that others may be late, too.
    const sinceMs = performance.now() - (renewedAt ?? at);
    if (sinceMs > leaseMs * (2 / 3)) takeOver?.notRenewed();
    renewedAt = at;
    takeOver?.renewed();
    // Its commands are ended before the store gives its tasks to others.
    if (shared !== undefined) deadline.moveTo(at + leaseMs - Math.min(leaseMs / 10, mostEndMs));
    renewIn(leaseMs / 3);
  };
  const renew = async (): Promise<void> => {
    const at = performance.now();
    try {
      const facts = isDraining ? nodeFactsOf(shared) : undefined;
      await store.renew(node, facts === undefined ? undefined : { ...facts, draining: true });
      renewed(at);
    } catch (error) {
      if (isStopped) return;
      if (error instanceof LeaseLostError || error instanceof DatabaseGoneError) return end(error);
      takeOver?.notRenewed();
      log('could not renew the lease; the server tries again', { error });
      renewIn(leaseMs / 12);
    }
  };
  return {
    start: async (taken) => {
      const at = performance.now();
      const name = shared?.name ?? '*';
      await store.join({ node, leaseMs, name, charts, facts: nodeFactsOf(shared) });
      renewed(at);
      await takeOver?.begin(taken);
    },
    look: () => takeOver?.look(),
    isFirst: () => takeOver?.isFirst() ?? true,
    takeNoMore: () => {
      takeOver?.stop();
      if (shared === undefined || isDraining) return;
      isDraining = true;
      // The others see it at once.
      if (renewedAt !== null) renewIn(0);
    },
    stop: async () => {
      stop();
      try {
        await store.leave(node);
      } catch (error) {
        log('could not give the lease back; other servers wait until it ends', { error });
      }
    },
  };
};

const nodeFactsOf = (shared: SharedLease | undefined): NodeFacts | undefined =>
  shared === undefined ? undefined : { ...shared.facts, charts };
