// PostgreSQL from Debian's packages, and servers of ours on it, for the benches of several servers.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const debian = '/usr/lib/postgresql';
const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => b - a) : [];
const program = fileURLToPath(new URL('../dist/cli/agent-server.js', import.meta.url));

const run = (name, ...args) => {
  const command = [join(debian, versions[0], 'bin', name), ...args];
  const [file, ...rest] =
    process.getuid() === 0 ? ['runuser', '-u', 'postgres', '--', ...command] : command;
  return execFileSync(file, rest, { cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
};

/** Starts a cluster on a socket of its own folder; ends this bench where there is no PostgreSQL. */
export const startPostgres = (name, settings = []) => {
  if (versions.length === 0) {
    console.log(`${name}: skipped, PostgreSQL is not installed`);
    process.exit();
  }
  const folder = mkdtempSync(join(tmpdir(), 'agent-bench-servers-'));
  const host = join(folder, 'cluster');
  mkdirSync(host);
  chmodSync(folder, 0o755);
  if (process.getuid() === 0) execFileSync('chown', ['postgres', host]);
  run('initdb', '-D', join(host, 'data'), '-U', 'postgres', '-A', 'trust', '--no-sync');
  const all = [
    ...['listen_addresses=', `unix_socket_directories=${host}`, 'fsync=off'],
    ...['max_connections=200', ...settings],
  ];
  const control = ['-D', join(host, 'data'), '-w', '-l', join(host, 'log')];
  run('pg_ctl', ...control, '-o', all.map((each) => `-c ${each}`).join(' '), 'start');
  return {
    folder,
    host,
    url: `postgres://postgres@/postgres?host=${host}&schema=bench`,
    addressOf: (database) => `postgresql://postgres@localhost/${database}?host=${host}`,
    stop: () => {
      run('pg_ctl', ...control, '-m', 'immediate', 'stop');
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** The same cluster behind a network that needs `ms` in each direction. */
export const putAway = async (cluster, ms) => {
  const delay = (from, to) => {
    from.on('data', (bytes) => setTimeout(() => !to.destroyed && to.write(bytes), ms));
    from.on('error', () => {});
    from.on('close', () => to.destroy());
  };
  const proxy = createServer((client) => {
    client.setNoDelay(true);
    const database = connect(join(cluster.host, '.s.PGSQL.5432'));
    delay(client, database);
    delay(database, client);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const at = `postgres@127.0.0.1:${proxy.address().port}`;
  return {
    ...cluster,
    url: `postgres://${at}/postgres?sslmode=disable&schema=bench`,
    addressOf: (database) => `postgresql://${at}/${database}?sslmode=disable`,
    stop: () => {
      proxy.close();
      cluster.stop();
    },
  };
};

/** A process of ours with a project of its own. */
export const startServer = async ({ folder, url }, name, config = {}, startMs = 30_000) => {
  const root = join(folder, name);
  mkdirSync(join(root, '.beads'), { recursive: true });
  const file = join(folder, `${name}.json`);
  const server = { port: 0, register_protocol_handler: false, ...config.server };
  writeFileSync(
    file,
    JSON.stringify({
      api: { backend: 'scripted' },
      ...{ sandbox: { mode: 'off' }, workspace: { mode: 'shared' } },
      ...config,
      ...{ server, store: { url: 'DATABASE_URL', ...config.store } },
    }),
  );
  const state = join(folder, `${name}-state`);
  const env = {
    ...{ PATH: process.env.PATH, HOME: folder, DATABASE_URL: url },
    ...{ AGENT_STATE_DIR: state, AGENT_SERVER_CONFIG: file },
  };
  const child = spawn(process.execPath, [program, '--server'], { cwd: root, env, stdio: 'ignore' });
  for (let waited = 0; !existsSync(join(state, 'server.json')); waited += 50) {
    if (child.exitCode !== null || waited > startMs) throw new Error(`${name} did not start`);
    await delay(50);
  }
  const { url: address } = JSON.parse(readFileSync(join(state, 'server.json'), 'utf8'));
  const token = readFileSync(join(state, 'token'), 'utf8').trim();
  return {
    pid: child.pid,
    health: async () => (await fetch(`${address}/health`)).json(),
    /** A JSON-RPC call. */
    call: async (method, params) => {
      const response = await fetch(`${address}/a2a/execute`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      });
      const { result, error } = await response.json();
      if (error !== undefined) throw new Error(error.message);
      return result;
    },
    kill: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
};
