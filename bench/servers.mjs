// Four servers that share a store, beside four processes of DBOS Transact that do the same null task
// on the same PostgreSQL. DBOS is installed into a folder of its own: nothing of ours needs it.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { putAway, startPostgres, startServer } from './cluster.mjs';
import { median, report } from './lib.mjs';

const tasks = Number(process.env.TASKS ?? 200);
const rounds = Number(process.env.ROUNDS ?? 3);
const alone = Number(process.env.ALONE ?? 20);
const workers = 4;
const leaseMs = 3_000;

/** How far the database is away, in each direction. */
const delayMs = Number(process.env.DELAY_MS ?? 0);

const near = startPostgres('several servers');
const cluster = delayMs === 0 ? near : await putAway(near, delayMs);
const client = new pg.Client({ host: near.host, user: 'postgres', database: 'postgres' });
await client.connect();
await client.query('set search_path = bench');
const countOf = async (sql) => Number((await client.query(sql)).rows[0].count);
const untilCount = async (sql, count) => {
  while ((await countOf(sql)) < count) await delay(10);
};

const script = (command) => {
  const turns = [{ calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] }];
  if (command !== undefined) turns.unshift({ calls: [{ tool: 'bash', arguments: { command } }] });
  const file = join(cluster.folder, `script-${command === undefined ? 'null' : 'long'}.json`);
  writeFileSync(file, JSON.stringify({ scripts: [{ turns }] }));
  return file;
};
const configOf = (command) => ({
  server: { max_concurrent_agents: 32, worker_pool_size: 8, max_requests_per_second: 100_000 },
  api: { backend: 'scripted', script: script(command) },
  agent: { on_interrupted: 'repeat' },
  store: { lease_seconds: leaseMs / 1_000 },
});

/** DBOS with its workers, each a process. */
const startDbos = async () => {
  const folder = join(cluster.folder, 'dbos');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  const wanted = ['install', '--silent', '--ignore-scripts', '@dbos-inc/dbos-sdk@5.3.0'];
  execFileSync('npm', wanted, { cwd: folder });
  await client.query('create database dbos');
  const url = cluster.addressOf('dbos');
  const worker = fileURLToPath(new URL('dbos-worker.mjs', import.meta.url));
  const children = [];
  for (let n = 0; n < workers; n += 1) {
    const child = spawn(process.execPath, [worker, folder, url, `worker-${n}`], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    children.push(child);
  }
  const { DBOSClient } = createRequire(join(folder, 'package.json'))('@dbos-inc/dbos-sdk');
  const dbos = await DBOSClient.create({ systemDatabaseUrl: url });
  const submit = (ms) =>
    dbos.enqueue({ queueName: 'tasks', workflowName: 'task', appVersion: 'one' }, ms);
  const own = new pg.Client({ host: near.host, user: 'postgres', database: 'dbos' });
  await own.connect();
  return {
    submit,
    /** Tasks per second. */
    many: async () => {
      const done = "select count(*) from dbos.workflow_status where status = 'SUCCESS'";
      const before = Number((await own.query(done)).rows[0].count);
      const began = performance.now();
      await Promise.all(Array.from({ length: tasks }, () => submit(0)));
      while (Number((await own.query(done)).rows[0].count) < before + tasks) await delay(10);
      return tasks / ((performance.now() - began) / 1_000);
    },
    one: async () => {
      const began = Date.now();
      const handle = await submit(0);
      return (await handle.getResult()) - began;
    },
    stop: async () => {
      await dbos.destroy();
      await own.end();
      for (const child of children) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    },
  };
};

const startOurs = async () => {
  const servers = [];
  for (let n = 0; n < workers; n += 1)
    servers.push(await startServer(cluster, `server-${n}`, configOf()));
  const submit = (text) =>
    servers[0].call('execute', { task: text, role: 'engineer', options: {} });
  const ended = 'select count(*) from attempts';
  return {
    many: async () => {
      const before = await countOf(ended);
      const began = performance.now();
      await Promise.all(Array.from({ length: tasks }, (_, n) => submit(`Do nothing, ${n}`)));
      await untilCount(ended, before + tasks);
      return tasks / ((performance.now() - began) / 1_000);
    },
    one: async () => {
      const began = Date.now();
      const { task_id } = await submit('Do nothing alone');
      const sql = `select min(at) as count from journal where task_id = '${task_id}' and type = 'status_update' and data like '%"started"%'`;
      await untilCount(sql, 1);
      const at = await countOf(sql);
      await untilCount(`select count(*) from attempts where task_id = '${task_id}'`, 1);
      return at - began;
    },
    stop: () => Promise.all(servers.map((server) => server.kill())),
  };
};

/** From `kill -9` of the server that has an attempt until another one has it. */
const killToRunning = async () => {
  const times = [];
  for (let n = 0; n < 3; n += 1) {
    const first = await startServer(cluster, `killed-${n}`, configOf('sleep 600'));
    const { task_id } = await first.call('execute', {
      task: 'Take long',
      role: 'engineer',
      options: {},
    });
    const acting = `select count(*) from steps where task_id = '${task_id}' and key like 'act:%'`;
    await untilCount(acting, 1);
    const other = await startServer(cluster, `other-${n}`, configOf('sleep 600'));
    await delay(leaseMs + 1_000);
    const frames = `select count(*) from journal where task_id = '${task_id}' and type = 'snapshot' and data like '%"acting"%'`;
    const before = await countOf(frames);
    const began = performance.now();
    await first.kill();
    await untilCount(frames, before + 1);
    times.push(performance.now() - began);
    await other.call('cancel', { task_id });
    await other.kill();
  }
  return median(times);
};

try {
  const ours = await startOurs();
  const dbos = await startDbos();
  const [manyOurs, manyTheirs, oneOurs, oneTheirs] = [[], [], [], []];
  await ours.many();
  await dbos.many();
  for (let round = 0; round < rounds; round += 1) {
    manyTheirs.push(await dbos.many());
    manyOurs.push(await ours.many());
  }
  for (let n = 0; n < alone; n += 1) {
    oneTheirs.push(await dbos.one());
    oneOurs.push(await ours.one());
  }
  report(`DBOS / ours: ${tasks} null tasks, 4 processes`, {
    ours: median(manyOurs),
    limit: median(manyTheirs),
    ratio: median(manyTheirs) / median(manyOurs),
    goal: 1.25,
    unit: '/s',
  });
  report('submit to start, alone, ours / DBOS (p50)', {
    ours: median(oneOurs),
    limit: median(oneTheirs),
    ratio: median(oneOurs) / median(oneTheirs),
    goal: 1.3,
  });
  await dbos.stop();
  await ours.stop();
  const took = await killToRunning();
  const limit = leaseMs + 1_000;
  report('kill -9 to running again / lease + 1 s', {
    ...{ ours: took, limit, ratio: took / limit, goal: 1 },
  });
} finally {
  await client.end();
  cluster.stop();
}
