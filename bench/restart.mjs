// A server that starts over a journal of 10,000 finished and 1,000 waiting tasks, beside a bare read of the same rows.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'libsql';
import { openSystem, report, timed, until } from './lib.mjs';

const finished = Number(process.env.FINISHED ?? 10_000);
const waiting = Number(process.env.WAITING ?? 1_000);
const goal = 2_000;

// One real run and one real wait are the rows that the others are copies of.
const { system, store, folder, close } = await openSystem({ cap: 1 });
const one = (await system.service.create({ description: 'a task that is finished' })).task_id;
const over = until(system, one, ({ type }) => type === 'stream_closed');
await system.service.execute({ task: one, role: 'engineer', options: {} });
await over;
await system.drain(0);
const other = (await system.service.create({ description: 'a task that waits' })).task_id;
await system.service.execute({ task: other, role: 'engineer', options: {} });
const rowsOf = (id) => ({
  entries: store.read({ taskId: id, after: 0, limit: 1_000 }),
  actors: [store.actor(id), store.actor(`${id}#1`)].filter((actor) => actor !== null),
});
const [done, pending] = [rowsOf(one), rowsOf(other)];

const root = mkdtempSync(join(tmpdir(), 'agent-bench-restart-'));
const stateDir = join(root, '.state');
await ledger.exchange.flush();
const lines = readFileSync(join(folder, '.beads', 'issues.jsonl'), 'utf8')
  .trim()
  .split('\n');
await close();
const { mkdirSync } = await import('node:fs');
mkdirSync(stateDir, { mode: 0o700 });
mkdirSync(join(root, '.beads'), { mode: 0o700 });
const { createSqliteStore } = await import('../build/actors/store/sqlite.js');
const copy = createSqliteStore({ file: join(stateDir, 'journal.db') });
const issues = [];
const multiply = (rows, from, count, prefix) => {
  const line = lines.find((text) => text.includes(`"${from}"`));
  for (let n = 0; n < count; n += 1) {
    const id = `bd-${prefix}${n.toString(36).padStart(4, '0')}`;
    const rename = (text) => text.replaceAll(from, id);
    copy.commit(
      { entries: rows.entries.map((entry) => ({ ...entry, taskId: id, data: rename(entry.data) })) },
      ...rows.actors.map((actor) => ({
        entries: [],
        actor: { ...actor, id: rename(actor.id), taskId: id, snapshot: rename(actor.snapshot) },
      })),
    );
    issues.push(rename(line));
  }
};
multiply(done, one, finished, 'f');
multiply(pending, other, waiting, 'w');
copy.close();
writeFileSync(join(root, '.beads', 'issues.jsonl'), `${issues.join('\n')}\n`);

const bare = await timed(() => {
  const db = new Database(join(stateDir, 'journal.db'));
  db.prepare('select * from actors').all();
  for (let after = 0; ; ) {
    const rows = db.prepare('select * from journal where seq > ? order by seq limit 1000').all(after);
    if (rows.length === 0) break;
    after = rows.at(-1).seq;
  }
  db.close();
});

const config = join(root, 'config.json');
writeFileSync(
  config,
  JSON.stringify({ server: { port: 0, register_protocol_handler: false }, api: { backend: 'scripted' } }),
);
const program = fileURLToPath(new URL('../dist/cli/agent-server.js', import.meta.url));
const env = { ...process.env, AGENT_STATE_DIR: stateDir };
let server;
const ours = await timed(async () => {
  server = spawn(process.execPath, [program, '--server', '--config', config], { cwd: root, env, stdio: 'inherit' });
  while (!existsSync(join(stateDir, 'server.json'))) await new Promise((resolve) => setTimeout(resolve, 5));
});
const gone = new Promise((resolve) => server.once('exit', resolve));
server.kill('SIGKILL');
await gone;
rmSync(root, { recursive: true });
report(`start over ${finished} + ${waiting} tasks`, { ours, limit: bare, ratio: ours / bare });
report('  of the two seconds that it may take', { ours, limit: goal, ratio: ours / goal, goal: 1 });
