import {
  DatabaseGoneError,
  LeaseLostError,
  type StoreError,
  StoreInUseError,
  type StoreLeases,
} from '../store/port.ts';

export interface LeaseKeeper {
  /** Takes over the attempts of earlier servers. @throws StoreError */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Facts of a store that servers of other machines may use, too. */
export interface SharedStore {
  /** Earlier starts of this server, which are over. */
  readonly former: readonly string[];
  /** Remembers starts for the next one. */
  keep(nodes: readonly string[]): Promise<void>;
}

export interface LeaseKeeperPorts {
  readonly store: StoreLeases;
  readonly node: string;
  readonly leaseMs: number;
  /** Absent: the project's lock says that no other server runs. */
  readonly shared?: SharedStore | undefined;
  /** Nothing of this server is saved any more. */
  readonly onLost: (error: StoreError) => void;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/**
 * Renews it by one row three times in its time, however many tasks there are. A server that was
 * paused for longer goes on, unless another one has taken over or the database is gone.
 */
export const createLeaseKeeper = ({
  store,
  node,
  leaseMs,
  shared,
  onLost,
  log,
}: LeaseKeeperPorts): LeaseKeeper => {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const renewLater = (): void => {
    if (!isStopped) timer = setTimeout(() => void renew(), leaseMs / 3).unref();
  };
  const renew = async (): Promise<void> => {
    try {
      await store.renew(node);
      renewLater();
    } catch (error) {
      if (isStopped) return;
      if (!(error instanceof LeaseLostError || error instanceof DatabaseGoneError)) {
        log('the lease could not be renewed; the server tries again', { error });
        return renewLater();
      }
      log('nothing can be saved any more; this server ends', { node, error });
      onLost(error);
    }
  };
  /** Two servers that look at the same moment both join; the first one loses its lease to the second. */
  const requireAlone = async ({ former, keep }: SharedStore): Promise<void> => {
    const others = (await store.live()).filter((id) => !former.includes(id));
    if (others.length > 0) throw new StoreInUseError(others);
    await keep([...former, node]);
  };
  return {
    start: async () => {
      if (shared !== undefined) await requireAlone(shared);
      await store.join({ node, leaseMs, isAlone: true });
      await shared?.keep([node]);
      renewLater();
    },
    stop: async () => {
      isStopped = true;
      clearTimeout(timer);
      if (shared === undefined) return;
      try {
        await store.leave(node);
      } catch (error) {
        log('the lease could not be given back; another server waits until it is over', { error });
      }
    },
  };
};
