// Queries per second of each idle server that shares a store, counted by PostgreSQL itself
// (pg_stat_statements; `begin`, `commit` and the like count, too). Needs Debian's postgresql.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { report } from './lib.mjs';

const counts = [1, 2, 4];
const settleMs = 10_000;
const measureMs = Number(process.env.SECONDS ?? 30) * 1_000;
const goal = 2;

const debian = '/usr/lib/postgresql';
const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => b - a) : [];
if (versions.length === 0) {
  console.log('queries of an idle server: skipped, PostgreSQL is not installed');
  process.exit();
}
const folder = mkdtempSync(join(tmpdir(), 'agent-bench-idle-'));
const postgres = (program, ...args) => {
  const command = [join(debian, versions[0], 'bin', program), ...args];
  const [file, ...rest] =
    process.getuid() === 0 ? ['runuser', '-u', 'postgres', '--', ...command] : command;
  return execFileSync(file, rest, { cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
};
/** A cluster on a socket of its own folder. */
const startPostgres = () => {
  const cluster = join(folder, 'cluster');
  mkdirSync(cluster);
  chmodSync(folder, 0o755);
  if (process.getuid() === 0) execFileSync('chown', ['postgres', cluster]);
  postgres('initdb', '-D', join(cluster, 'data'), '-U', 'postgres', '-A', 'trust', '--no-sync');
  const settings = [
    ...['listen_addresses=', `unix_socket_directories=${cluster}`, 'fsync=off'],
    ...['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track=top'],
  ];
  const options = settings.map((each) => `-c ${each}`).join(' ');
  const control = ['-D', join(cluster, 'data'), '-w', '-l', join(cluster, 'log')];
  postgres('pg_ctl', ...control, '-o', options, 'start');
  return {
    url: `postgres://postgres@/postgres?host=${cluster}`,
    host: cluster,
    stop: () => postgres('pg_ctl', ...control, '-m', 'immediate', 'stop'),
  };
};

const program = new URL('../dist/cli/agent-server.js', import.meta.url).pathname;
const startServer = async (url, name) => {
  const root = join(folder, name);
  mkdirSync(join(root, '.beads'), { recursive: true });
  const config = join(folder, `${name}.json`);
  writeFileSync(
    config,
    JSON.stringify({
      server: { port: 0, register_protocol_handler: false },
      api: { backend: 'scripted' },
      ...{ sandbox: { mode: 'off' }, workspace: { mode: 'shared' } },
      store: { url: 'DATABASE_URL' },
    }),
  );
  const env = {
    ...{ PATH: process.env.PATH, HOME: root, DATABASE_URL: url },
    ...{ AGENT_STATE_DIR: join(folder, `${name}-state`), AGENT_SERVER_CONFIG: config },
  };
  const child = spawn(process.execPath, [program, '--server'], { cwd: root, env, stdio: 'ignore' });
  for (let waited = 0; !existsSync(join(env.AGENT_STATE_DIR, 'server.json')); waited += 50) {
    if (child.exitCode !== null || waited > 30_000) throw new Error(`${name} did not start`);
    await delay(50);
  }
  return child;
};

const cluster = startPostgres();
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
      servers.push(await startServer(cluster.url, `server-${servers.length + 1}`));
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
  for (const server of servers) {
    server.kill('SIGKILL');
    await once(server, 'exit');
  }
  await client.end();
  cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
