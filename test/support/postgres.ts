import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import { withLock } from '../../src/actors/store/process-lock.ts';
import { makeClusterIn, portOfServerIn, startServerIn, stopServerIn } from './postgres-programs.ts';
import type { AtEnd } from './temporary.ts';

export { noPostgres } from './postgres-programs.ts';

let started: Promise<number> | null = null;

/** The port of the one server of this run. */
const sharedPort = (): Promise<number> => {
  const folder = inject('postgresFolder');
  const start = async (): Promise<number> => {
    const running = portOfServerIn(folder);
    if (running !== null) return running;
    makeClusterIn(folder);
    return startServerIn(folder);
  };
  started ??= withLock(join(folder, 'start.lock'), start, { waitMs: 60_000 });
  return started;
};

let schemas = 0;

/** The address of a schema of its own, which is not there yet, in the one server of this run. */
export const freshAddress = async (): Promise<string> => {
  schemas += 1;
  return `postgres://postgres@127.0.0.1:${await sharedPort()}/postgres?schema=t${process.pid}_${schemas}`;
};

const clientOf = async (address: string): Promise<pg.Client> => {
  const url = new URL(address);
  const schema = url.searchParams.get('schema') ?? 'public';
  url.search = '';
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  await client.query(`set search_path = ${schema}`);
  return client;
};

/** Carries out statements, as another program would. */
export const inPostgres = async (address: string, sql: string): Promise<pg.QueryResult['rows']> => {
  const client = await clientOf(address);
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
};

/** Carries out a statement in a transaction. @returns ends it */
export const holdInPostgres = async (
  address: string,
  sql: string,
): Promise<() => Promise<void>> => {
  const client = await clientOf(address);
  onTestFinished(() => client.end());
  await client.query(`begin; ${sql}`);
  return async () => void (await client.query('rollback'));
};

export interface OwnServer {
  readonly address: string;
  readonly folder: string;
  readonly port: number;
  stop(mode?: 'immediate' | 'fast'): void;
  start(): Promise<void>;
}

/** A server that the test may stop and start. */
export const ownServer = async (
  settings: readonly string[] = [],
  atEnd: AtEnd = onTestFinished,
): Promise<OwnServer> => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-pg-')));
  atEnd(() => {
    stopServerIn(folder);
    rmSync(folder, { recursive: true, force: true });
  });
  makeClusterIn(folder);
  const port = await startServerIn(folder, undefined, settings);
  return {
    address: `postgres://postgres@127.0.0.1:${port}/postgres`,
    folder,
    port,
    stop: (mode) => stopServerIn(folder, mode),
    start: async () => {
      await startServerIn(folder, port, settings);
    },
  };
};
