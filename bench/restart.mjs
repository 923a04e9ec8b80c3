// A server that starts over 100,000 tasks, 10,000 of them finished and 1,000 waiting, beside a bare
// read of the same rows.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import Database from 'libsql';
import { openSystem, openTasks, report, timed, until } from './lib.mjs';

const tasks = Number(process.env.TASKS ?? 100_000);
const finished = Number(process.env.FINISHED ?? 10_000);
const waiting = Number(process.env.WAITING ?? 1_000);
const goal = 2_000;
const memoryGoal = 200;

// One real run and one real wait are the rows that the others are copies of.
const { system, store, tracker, folder, ledger, close } = await openSystem({ cap: 1 });
const one = (await system.service.create({ description: 'a task that is finished' })).task_id;
const over = until(system, one, ({ type }) => type === 'stream_closed');
await system.service.execute({ task: one, role: 'engineer', options: {} });
await over;
await system.drain(0);
const other = (await system.service.create({ description: 'a task that waits' })).task_id;
await system.service.execute({ task: other, role: 'engineer', options: {} });
const third = (
  await tracker.create({
    title: 'open',
    description: 'what to do '.repeat(10),
    priority: 2,
    labels: [],
    dependencies: [],
  })
).id;
const rowsOf = (id) => ({
  entries: store.read({ taskId: id, after: 0, limit: 1_000 }),
  actors: [store.actor(id), store.actor(`${id}#1`)].filter((actor) => actor !== null),
});
const [done, pending] = [rowsOf(one), rowsOf(other)];
await ledger.exchange.flush();
const lines = readFileSync(join(folder, '.beads', 'issues.jsonl'), 'utf8')
  .trim()
  .split('\n');
await close();

const place = mkdtempSync(join(tmpdir(), 'agent-bench-restart-'));
const [root, stateDir] = [join(place, 'project'), join(place, 'state')];
mkdirSync(stateDir, { mode: 0o700 });
mkdirSync(join(root, '.beads'), { recursive: true, mode: 0o700 });
const idOf = (prefix, n) => `bd-${prefix}${n.toString(36).padStart(4, '0')}`;
const linesOf = (from, count, prefix) => {
  const line = lines.find((text) => text.includes(`"${from}"`));
  return Array.from({ length: count }, (_, n) => `${line.replaceAll(from, idOf(prefix, n))}\n`);
};
writeFileSync(
  join(root, '.beads', 'issues.jsonl'),
  [
    ...linesOf(one, finished, 'f'),
    ...linesOf(other, waiting, 'w'),
    ...linesOf(third, tasks - finished - waiting, 'o'),
  ].join(''),
);
const copy = openTasks(root, join(stateDir, 'journal.db'));
await copy.ledger.exchange.refresh();
const multiply = (rows, from, count, prefix) => {
  for (let n = 0; n < count; n += 1) {
    const id = idOf(prefix, n);
    const rename = (text) => text.replaceAll(from, id);
    copy.store.commit(
      {
        entries: rows.entries.map((entry) => ({ ...entry, taskId: id, data: rename(entry.data) })),
      },
      ...rows.actors.map((actor) => ({
        entries: [],
        actor: { ...actor, id: rename(actor.id), taskId: id, snapshot: rename(actor.snapshot) },
      })),
    );
  }
};
multiply(done, one, finished, 'f');
multiply(pending, other, waiting, 'w');
copy.store.close();

const bare = await timed(() => {
  const db = new Database(join(stateDir, 'journal.db'));
  db.prepare('select * from actors').all();
  for (let after = 0; ; ) {
    const rows = db
      .prepare('select * from journal where seq > ? order by seq limit 1000')
      .all(after);
    if (rows.length === 0) break;
    after = rows.at(-1).seq;
  }
  db.close();
});

// The three that get a slot think until the measurement is over.
writeFileSync(
  join(place, 'script.json'),
  JSON.stringify({ turn_ms: 600_000, scripts: [{ turns: [] }] }),
);
const config = join(place, 'config.json');
writeFileSync(
  config,
  JSON.stringify({
    server: { port: 0, register_protocol_handler: false },
    api: { backend: 'scripted', script: 'script.json' },
  }),
);
const agent = fileURLToPath(new URL('../dist/cli/agent.js', import.meta.url));
const program = fileURLToPath(new URL('../dist/cli/agent-server.js', import.meta.url));
const env = { ...process.env, AGENT_STATE_DIR: stateDir };
const facts = join(stateDir, 'server.json');
const start = async () => {
  rmSync(facts, { force: true });
  const server = spawn(process.execPath, [program, '--server', '--config', config], {
    cwd: root,
    env,
    stdio: 'ignore',
  });
  while (!existsSync(facts)) await delay(5);
  const kill = async () => {
    const gone = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGKILL');
    await gone;
  };
  const megabytes = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024;
  return { kill, megabytes };
};
const run = (...args) =>
  new Promise((resolve, reject) => {
    const command = spawn(process.execPath, [agent, ...args], { cwd: root, env, stdio: 'ignore' });
    command.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`agent ${args[0]} ended with ${code}`)),
    );
  });

let server;
const ours = await timed(async () => {
  server = await start();
});
await server.kill();
report(`start over ${tasks} tasks, ${finished} + ${waiting} run`, {
  ours,
  limit: bare,
  ratio: ours / bare,
});
report('  of the two seconds that it may take', { ours, limit: goal, ratio: ours / goal, goal: 1 });

// Nothing waits any more: what a task at rest costs, after a list of all and an export of the file.
const database = new Database(join(stateDir, 'journal.db'));
database.exec('update actors set pending = 0');
database.close();
server = await start();
await run('list', '--json');
await run('create', 'one more');
await delay(10_000);
const held = server.megabytes();
await server.kill();
rmSync(place, { recursive: true });
report(`memory of a server with ${tasks} tasks at rest`, {
  ours: held,
  limit: memoryGoal,
  ratio: held / memoryGoal,
  goal: 1,
  unit: 'MB',
});
