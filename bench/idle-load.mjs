// Queries per second of each idle server that shares a store, counted by PostgreSQL itself
// (pg_stat_statements; `begin`, `commit` and the like count, too). Needs Debian's postgresql.
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startPostgres, startServer } from './cluster.mjs';
import { report } from './lib.mjs';

const counts = [1, 2, 4];
const settleMs = 10_000;
const measureMs = Number(process.env.SECONDS ?? 30) * 1_000;
const goal = 2;

const cluster = startPostgres('queries of an idle server', [
  ...['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track=top'],
]);
const client = new pg.Client({ host: cluster.host, user: 'postgres', database: 'postgres' });
await client.connect();
await client.query('create extension pg_stat_statements');
const asked = async () =>
  (
    await client.query(
      `select query, calls::int as calls from pg_stat_statements
       where query not like '%pg_stat_statements%' order by calls desc`,
    )
  ).rows;

const servers = [];
try {
  for (const count of counts) {
    while (servers.length < count)
      servers.push(await startServer(cluster, `server-${servers.length + 1}`));
    await delay(settleMs);
    await client.query('select pg_stat_statements_reset()');
    const began = performance.now();
    await delay(measureMs);
    const statements = await asked();
    const seconds = (performance.now() - began) / 1_000;
    const perServer = statements.reduce((sum, { calls }) => sum + calls, 0) / seconds / count;
    report(`queries/s of each of ${count} idle servers`, {
      ...{ ours: perServer, limit: goal, ratio: perServer / goal, goal: 1, unit: '' },
    });
    if (process.env.QUERIES !== undefined)
      for (const { query, calls } of statements)
        console.log(
          `  ${(calls / seconds / count).toFixed(2)}  ${query.replaceAll(/\s+/g, ' ').slice(0, 120)}`,
        );
  }
} finally {
  for (const server of servers) await server.kill();
  await client.end();
  cluster.stop();
}
