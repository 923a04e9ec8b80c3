import {
  DatabaseGoneError,
  LeaseLostError,
  type StoreError,
  type StoreLeases,
} from '../store/port.ts';

export interface LeaseKeeper {
  /** Takes over the attempts of earlier servers. @throws StoreError */
  start(): Promise<void>;
  stop(): void;
}

export interface LeaseKeeperPorts {
  readonly store: StoreLeases;
  readonly node: string;
  readonly leaseMs: number;
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
  return {
    start: async () => {
      // The project's lock says that no other server runs.
      await store.join({ node, leaseMs, isAlone: true });
      renewLater();
    },
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
};
