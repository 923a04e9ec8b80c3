// Servers with 100,000 tasks that wait for a slot, beside servers with 100 of them, on one PostgreSQL.
// A tenth of the tasks wait for a dependency. A role is held at its cap, so its tasks wait while the
// server is measured; tasks of another role start at once.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startServer as startIn, startPostgres } from './cluster.mjs';
import { median, percentile, report, timed } from './lib.mjs';

const counts = (process.env.WAITING ?? '100,100000').split(',').map(Number);
const dispatched = Number(process.env.RUNS ?? 40);
const alone = 20;
const idleMs = Number(process.env.SECONDS ?? 10) * 1_000;
const startMs = 600_000;
const numbers = (process.env.SERVERS ?? '1,2').split(',').map(Number);

const cluster = startPostgres('waiting tasks', [
  ...['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track=top'],
]);
const client = new pg.Client({ host: cluster.host, user: 'postgres', database: 'postgres' });
await client.connect();
await client.query('create extension pg_stat_statements');
const servers = [];
const startServer = async (...given) => {
  const server = await startIn(...given);
  servers.push(server);
  return server;
};
const numberOf = async (sql, ...values) =>
  Number(Object.values((await client.query(sql, values)).rows[0])[0]);
const until = async (isThere) => {
  while (!(await isThere())) await delay(10);
};

const finish = { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] };
const configFor = (name, at = '') => {
  const script = join(cluster.folder, `${name}.script.json`);
  const command = `while [ ! -e ${join(cluster.folder, `go-${at}`)} ]; do sleep 0.1; done`;
  const hold = { calls: [{ tool: 'bash', arguments: { command, timeout_seconds: 600 } }] };
  const scripts = [{ role: 'tester', turns: [hold, finish] }, { turns: [finish] }];
  writeFileSync(script, JSON.stringify({ scripts }));
  const server = { max_concurrent_agents: 4, worker_pool_size: 2, queue_limit: 1_000_000 };
  return {
    server: { ...server, max_requests_per_second: 100_000 },
    roles: { tester: { concurrency: 1 } },
    api: { backend: 'scripted', script },
    agent: { on_interrupted: 'repeat', timeout_seconds: 3_600 },
  };
};
const execute = (server, task, role) => server.call('execute', { task, role, options: {} });
const startedAt = (id) =>
  numberOf(
    `select min(at) from journal where task_id = $1 and type = 'status_update' and data like '%"started"%'`,
    id,
  );

const columnsOf = async (table) => {
  const { rows } = await client.query(
    `select column_name as name, data_type as type from information_schema.columns
     where table_schema = current_schema and table_name = $1 order by ordinal_position`,
    [table],
  );
  return rows;
};

/** Copies the rows of a task for `count` others. `names` says in SQL what replaces an id in a text. */
const copyTask = async (from, count, names) => {
  const copy = async (table, where, given = {}) => {
    const columns = (await columnsOf(table)).filter(({ name }) => given[name] !== null);
    const values = columns.map(({ name, type }) => {
      if (given[name] !== undefined || type !== 'text') return given[name] ?? name;
      return names.reduce((sql, [id, other]) => `replace(${sql}, '${id}', ${other})`, name);
    });
    await client.query(
      `insert into ${table} (${columns.map(({ name }) => name).join(', ')})
       select ${values.join(', ')} from ${table}, generate_series(1, ${count}) n ${where}`,
    );
  };
  const own = `where task_id = '${from}'`;
  const revision = await numberOf('select max(revision) from tasks');
  // Its trigger counts one row at a time, and within a transaction each time takes longer.
  await client.query('alter table tasks disable trigger task_counted');
  await copy('tasks', `where id = '${from}'`, { position: null, revision: `${revision} + n` });
  await copy('dependencies', own);
  await copy('actors', own, { changed_at: 'changed_at + n' });
  const [end, size] = [
    await numberOf('select max(seq) from journal'),
    await numberOf(`select count(*) from journal ${own}`),
  ];
  const placed = (seq) =>
    `${end} + (n - 1) * ${size} + (select count(*) from journal other
      where other.task_id = '${from}' and other.seq <= ${seq})`;
  // Without hashes, as entries of version 2.1.
  await copy('journal', own, {
    ...{ seq: placed('journal.seq'), hash: 'null', previous: 'null' },
    base: `case when base is not null then ${placed('journal.base')} end`,
  });
};

/** Tasks that wait, in a schema of their own. */
const fill = async (count) => {
  const schema = `waiting_${count}`;
  const url = cluster.url.replace('schema=bench', `schema=${schema}`);
  const server = await startServer({ ...cluster, url }, `${schema}-fill`, configFor(schema));
  await client.query(`set search_path = ${schema}`);
  const hold = (await execute(server, 'Hold the slot', 'tester')).task_id;
  await until(() => startedAt(hold));
  const ready = (await execute(server, 'Wait for a slot', 'tester')).task_id;
  const request = { description: 'Wait for a task', dependencies: [ready] };
  const blocked = (await server.call('create', request)).task_id;
  await server.call('run', { task_ids: [blocked], role: 'tester' });
  await until(() => numberOf(`select count(*) from actors where snapshot like '%awaitDep%'`));
  await server.kill();
  await client.query(
    `delete from actors where task_id = '${hold}'; delete from journal where task_id = '${hold}';
     delete from steps; delete from tasks where id = '${hold}'; delete from nodes;
     delete from ledger where key in ('export_node', 'file', 'others', 'waiting');
     update actors set owner = null`,
  );
  const id = (letter) => `'bd-${letter}' || lpad(to_hex(n), 6, '0')`;
  const [open, pending] = [
    [ready, id('w')],
    [blocked, id('d')],
  ];
  await copyTask(ready, count * 0.9 - 1, [open]);
  await copyTask(blocked, count * 0.1 - 1, [pending, open]);
  await client.query(
    `alter table tasks enable trigger task_counted; delete from task_counts;
     insert into task_counts select status, (unmet > 0)::integer, count(*) from tasks group by 1, 2;
     update ledger set value = (select max(revision) from tasks) where key = 'revision';
     update journal_end set seq = (select max(seq) from journal)`,
  );
  await client.query('vacuum analyze');
  return { url, schema };
};

const cpuSeconds = ({ pid }) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
};
const megabytes = ({ pid }) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
const cpuOf = (live) => live.reduce((sum, server) => sum + cpuSeconds(server), 0) / live.length;
const reset = () => client.query('select public.pg_stat_statements_reset()');
const statements = async () =>
  (
    await client.query(
      `select query, calls::int as calls, total_exec_time as ms from public.pg_stat_statements
       where query not like '%pg_stat_statements%' order by total_exec_time desc`,
    )
  ).rows;
const tell = async (what) => {
  if (process.env.QUERIES === undefined) return;
  console.log(`  ${what}`);
  for (const { query, calls, ms } of (await statements()).slice(0, 8))
    console.log(
      `  ${ms.toFixed(0).padStart(7)} ms ${calls}  ${query.replaceAll(/\s+/g, ' ').slice(0, 140)}`,
    );
};

/** After a start, a server compares tasks with their journals and writes its file of tasks. */
const untilIdle = async (live) => {
  for (let used = 1; used > 0.1; ) {
    const before = cpuOf(live);
    await delay(2_000);
    used = cpuOf(live) - before;
  }
};

const idle = async (live) => {
  await reset();
  const [cpu, began] = [cpuOf(live), performance.now()];
  await delay(idleMs);
  const rows = await statements();
  const seconds = (performance.now() - began) / 1_000;
  return {
    queries: rows.reduce((sum, { calls }) => sum + calls, 0) / seconds / live.length,
    cpu: ((cpuOf(live) - cpu) / seconds) * 1_000,
    memory: Math.max(...live.map(megabytes)),
  };
};

const medianOf = async (times, work) => {
  const all = [];
  for (let n = 0; n < times; n += 1) all.push(await timed(work));
  return median(all);
};

/** From a request to its start, while tasks of another role wait. */
const requestToStart = async (server) => {
  const all = [];
  for (let n = 0; n < alone; n += 1) {
    const began = Date.now();
    const { task_id } = await execute(server, `Do nothing, ${n}`, 'engineer');
    await until(() => numberOf('select count(*) from attempts where task_id = $1', task_id));
    all.push((await startedAt(task_id)) - began);
  }
  return median(all);
};

/** From the end of an attempt to the start of the next one at the same server. */
const endToStart = async (name, number) => {
  const count = () => numberOf('select count(*) from attempts');
  const before = await count();
  writeFileSync(join(cluster.folder, `go-${name}`), '');
  await until(async () => (await count()) >= before + number + dispatched);
  const { rows } = await client.query(
    `select owner, ended_at, (select min(at) from journal where journal.task_id = attempts.task_id
       and type = 'status_update' and data like '%"started"%') as started_at
     from attempts where role = 'tester' and owner in (select id from nodes) order by owner, started_at`,
  );
  const gaps = rows.slice(1).flatMap(({ owner, started_at: at }, n) => {
    const gap = Number(at) - Number(rows[n].ended_at);
    return owner === rows[n].owner && gap >= 0 ? [gap] : [];
  });
  return { gap: median(gaps), late: percentile(gaps, 0.95) };
};

const measure = async ({ url, schema }, count, number) => {
  await client.query(`set search_path = ${schema}`);
  // The servers of before were killed: nobody waits for the end of their leases.
  await client.query('delete from nodes; update actors set owner = null');
  const name = `${count}-${number}`;
  const live = [];
  const add = async (n) => {
    const own = `server-${name}-${n}`;
    live.push(await startServer({ ...cluster, url }, own, configFor(own, name), startMs));
  };
  await reset();
  const start = await timed(() => add(0));
  await tell(`the start of a server, ${count} tasks`);
  for (let n = 1; n < number; n += 1) await add(n);
  await untilIdle(live);
  const { total } = await live[0].call('list', { order: 'newest', limit: 1 });
  if (total < count) throw new Error(`${total} tasks are there, and not ${count}`);
  const figures = { start, ...(await idle(live)) };
  await tell(`${number} idle servers`);
  await reset();
  const list = (params) => medianOf(5, () => live[0].call('list', { limit: 50, ...params }));
  figures.list = await list({ order: 'newest' });
  figures.ready = await list({ status: 'queued' });
  figures.active = await list({ status: 'active' });
  figures.health = await medianOf(5, live[0].health);
  await tell('lists');
  await reset();
  figures.request = await requestToStart(live[0]);
  Object.assign(figures, await endToStart(name, number));
  await tell('dispatch');
  for (const server of live) await server.kill();
  return figures;
};

const rows = [
  ['end of a task to start of the next', 'gap', 2],
  ['  p95', 'late'],
  ['request to start, null task', 'request', 2],
  ['first page of a list', 'list', 2],
  ['  of tasks that are ready', 'ready'],
  ['  of active tasks', 'active'],
  ['health', 'health'],
  ['queries/s of an idle server', 'queries', 2, ''],
  ['CPU of an idle server, per second', 'cpu'],
  ['memory of a server', 'memory', undefined, 'MB'],
  ['start of a server', 'start'],
];

try {
  const filled = [];
  for (const count of counts) filled.push({ count, ...(await fill(count)) });
  for (const number of numbers) {
    let few;
    for (const { count, ...where } of filled) {
      const figures = await measure(where, count, number);
      few ??= figures;
      const of = number === 1 ? '1 server' : `${number} servers`;
      console.log(`${count} tasks wait, ${of}; beside ${counts[0]}`);
      for (const [what, key, goal, unit = 'ms'] of rows)
        report(`  ${what}`, {
          ...{ ours: figures[key], limit: few[key], ratio: figures[key] / few[key], unit },
          ...(figures === few || goal === undefined ? {} : { goal }),
        });
    }
  }
} finally {
  for (const server of servers) await server.kill();
  await client.end();
  cluster.stop();
}
