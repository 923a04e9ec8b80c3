// The tasks of a project without bd: many against a thousand, in one run.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { listTasks } from '../build/actors/engine/queries/list-tasks.js';
import { viewSaved } from '../build/actors/journal/snapshots.js';
import { cpuMs, median, openTasks, report } from './lib.mjs';

const few = 1_000;
const many = Number(process.env.TASKS ?? 100_000);
const rounds = Number(process.env.RUNS ?? 20);

const idOf = (n) => `bd-${n.toString(36).padStart(5, '0')}`;
const lineOf = (n) => {
  const at = new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString();
  const dependency = {
    issue_id: idOf(n),
    depends_on_id: idOf(n - 1),
    type: 'blocks',
    created_at: at,
    created_by: 'x',
  };
  return JSON.stringify({
    id: idOf(n),
    title: `task ${n}`,
    description: 'what to do '.repeat(10),
    status: n % 10 === 0 ? 'closed' : 'open',
    priority: 2,
    issue_type: 'task',
    created_at: at,
    updated_at: at,
    ...(n % 3 === 1 ? { dependencies: [dependency] } : {}),
  });
};

const open = (count) => {
  const root = mkdtempSync(join(tmpdir(), 'agent-bench-'));
  mkdirSync(join(root, '.beads'));
  const lines = Array.from({ length: count }, (_, n) => `${lineOf(n)}\n`);
  writeFileSync(join(root, '.beads', 'issues.jsonl'), lines.join(''));
  const { db, store, ledger, tracker } = openTasks(root);
  const views = { tracker, store, viewOf: (tracked) => viewSaved(store, tracked) };
  const close = () => {
    db.close();
    rmSync(root, { recursive: true });
  };
  return { count, ledger, tracker, views, close };
};

/** Median of one call (ms) by a clock; short calls are timed many at once. */
const medianOf = async (clock, call, { times = rounds, atOnce = 1 } = {}) => {
  const all = [];
  for (let n = 0; n < times; n += 1) {
    const began = clock();
    for (let m = 0; m < atOnce; m += 1) await call(n * atOnce + m);
    all.push((clock() - began) / atOnce);
  }
  return median(all);
};
const timeOf = (call, how) => medianOf(() => performance.now(), call, how);
/** For reads, which wait for no disk: other programs do not count. */
const cpuOf = (call, how) => medianOf(() => cpuMs(), call, how);
const newTask = { title: 'x', description: 'y', priority: 2, labels: [], dependencies: [] };

const figuresOf = async ({ count, ledger, tracker, views }) => {
  const cpu = process.cpuUsage();
  const imported = await timeOf(() => ledger.exchange.refresh(), { times: 1 });
  const importedCpu = cpuMs(cpu);
  const created = await timeOf(() => tracker.create(newTask));
  const claimed = await timeOf((n) => tracker.claim(idOf(n * 3 + 32)));
  const found = await cpuOf((n) => tracker.find(idOf((n * 7919) % count)), { atOnce: 500 });
  const page = await timeOf(() => listTasks(views, { status: 'queued', limit: 50 }), rounds, 10);
  const listed = await cpuOf(
    async () => {
      for (let cursor; ; ) {
        const { next_cursor } = await listTasks(views, cursor === undefined ? {} : { cursor });
        if (next_cursor === undefined) return;
        cursor = next_cursor;
      }
    },
    { times: 1 },
  );
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const written = await timeOf(() => ledger.exchange.flush(), { times: 1 });
  delay.disable();
  return {
    imported,
    importedCpu,
    created,
    claimed,
    found,
    page,
    listed: listed / count,
    written,
    paused: delay.percentile(99) / 1e6,
  };
};

const systems = [open(few), open(many)];
const [small, large] = [await figuresOf(systems[0]), await figuresOf(systems[1])];
const row = (what, key, goal) =>
  report(what, { ours: large[key], limit: small[key], ratio: large[key] / small[key], goal });
row(`create among ${many} / among ${few}`, 'created', 1.5);
row('claim', 'claimed', 1.5);
row('status', 'found', 1.5);
row('page of 50 ready tasks', 'page', 1.5);
row('listing all, for each task', 'listed', 1.3);
/** Five seconds for 100,000 lines (ms). */
const importLimit = many / 20;
report('first import, of the time it may take', {
  ours: large.imported,
  limit: importLimit,
  ratio: large.imported / importLimit,
  goal: 1,
});
report('  its CPU time', {
  ours: large.importedCpu,
  limit: importLimit,
  ratio: large.importedCpu / importLimit,
});
report('export / the pause of a second', {
  ours: large.written,
  limit: 1_000,
  ratio: large.written / 1_000,
});
report('p99 of the event loop meanwhile, of 50 ms', {
  ours: large.paused,
  limit: 50,
  ratio: large.paused / 50,
  goal: 1,
});
for (const { close } of systems) close();
