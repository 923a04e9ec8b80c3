import { StoreError } from '../port.ts';
import { isFull, type PostgresConnection } from './connect.ts';

/** Connections that are opened when they are needed, and used again. */
export interface Pool {
  /** Gives one to `work` alone. @throws StoreError, and what `work` throws */
  use<Result>(work: (connection: PostgresConnection) => Promise<Result>): Promise<Result>;
  close(): void;
}

type Take = (connection: PostgresConnection | null) => void;

export const createPool = (open: () => Promise<PostgresConnection>, size: number): Pool => {
  const idle: PostgresConnection[] = [];
  const all = new Set<PostgresConnection>();
  /** They get a connection, or null when they may open one. */
  const waiting: Take[] = [];
  let count = 0;
  let isClosed = false;

  const requireOpen = (): void => {
    if (isClosed) throw new StoreError('the database is closed');
  };
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) count -= 1;
    else next(null);
  };
  const openOne = async (): Promise<PostgresConnection> => {
    try {
      requireOpen();
      const connection = await open();
      all.add(connection);
      connection.onEnd(() => all.delete(connection));
      if (isClosed) connection.close();
      return connection;
    } catch (error) {
      if (!isFull(error) || all.size === 0) {
        leave();
        throw error;
      }
      // One that was opened before comes back. Who waits for it does not try to open one.
      count -= 1;
      return idleOne() ?? waitForOne();
    }
  };
  const idleOne = (): PostgresConnection | null => {
    for (let next = idle.pop(); next !== undefined; next = idle.pop()) {
      if (next.isOpen()) return next;
      count -= 1;
    }
    return null;
  };
  const waitForOne = async (): Promise<PostgresConnection> =>
    (await new Promise<PostgresConnection | null>((resolve) => waiting.push(resolve))) ?? openOne();
  const take = async (): Promise<PostgresConnection> => {
    requireOpen();
    const free = idleOne();
    if (free !== null) return free;
    if (count === size) return waitForOne();
    count += 1;
    return openOne();
  };
  const giveBack = (connection: PostgresConnection): void => {
    if (!connection.isOpen() || isClosed) {
      leave();
      return;
    }
    const next = waiting.shift();
    if (next === undefined) idle.push(connection);
    else next(connection);
  };

  return {
    use: async (work) => {
      const connection = await take();
      try {
        return await work(connection);
      } finally {
        giveBack(connection);
      }
    },
    close: () => {
      isClosed = true;
      for (const connection of all) connection.close();
    },
  };
};
