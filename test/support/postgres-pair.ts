import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { inPostgres } from './postgres.ts';
import {
  copyServerTo,
  freePort,
  killServerIn,
  makeClusterIn,
  promoteServerIn,
  startServerIn,
  stopServerIn,
} from './postgres-programs.ts';
import type { AtEnd } from './temporary.ts';

/** A primary and a standby of PostgreSQL: a commit is answered when both have it. */
export const startPostgresPair = async (schema: string, atEnd: AtEnd) => {
  const openHost = async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-pg-')));
    atEnd(() => {
      stopServerIn(folder);
      rmSync(folder, { recursive: true, force: true });
    });
    return { folder, port: await freePort() };
  };
  let [primary, standby] = [await openHost(), await openHost()];
  const addressAt = (port: number): string =>
    `postgres://postgres@127.0.0.1:${port}/postgres?schema=${schema}`;
  const on = (port: number, sql: string) =>
    inPostgres(`postgres://postgres@127.0.0.1:${port}/postgres`, sql);
  /** A new copy of the primary in place of what is there. */
  const follow = async (): Promise<void> => {
    rmSync(join(standby.folder, 'data'), { recursive: true, force: true });
    copyServerTo(standby.folder, primary.port);
    await startServerIn(standby.folder, standby.port);
    await on(primary.port, "alter system set synchronous_standby_names = 'standby'");
    await on(primary.port, 'select pg_reload_conf()');
    await vi.waitFor(async () => {
      const states = await on(primary.port, 'select sync_state from pg_stat_replication');
      if (states[0]?.sync_state !== 'sync') throw new Error(JSON.stringify(states));
    });
  };

  makeClusterIn(primary.folder);
  await startServerIn(primary.folder, primary.port);
  await follow();
  return {
    /** Both, as a server of ours names them. */
    address: `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres?schema=${schema}`,
    addressOfPrimary: (): string => addressAt(primary.port),
    /** The primary loses its power, and the standby takes its place; nobody follows it then. */
    failOver: async (): Promise<void> => {
      killServerIn(primary.folder);
      await on(standby.port, 'alter system reset synchronous_standby_names');
      await on(standby.port, 'select pg_reload_conf()');
      promoteServerIn(standby.folder);
      [primary, standby] = [standby, primary];
    },
    follow,
  };
};
