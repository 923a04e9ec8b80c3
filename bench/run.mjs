// Speed as ratios within one run: our own figure beside the limit of the same disk and the same process.
// Usage: npm run bench
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createScriptedModel } from '../dist/actors/model/scripted.js';
import { createSqliteStore } from '../dist/actors/store/sqlite.js';
import { createSystem } from '../dist/actors/system.js';
import { createEmbeddedTracker } from '../dist/actors/tracker/embedded.js';
import { createSharedWorkspace } from '../dist/actors/workspace/shared.js';

const runs = 60;
const percentile = (values, share) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)];
const timed = async (work) => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};

const folder = mkdtempSync(join(tmpdir(), 'agent-bench-'));
const store = createSqliteStore({ file: join(folder, 'journal.db') });
const tracker = createEmbeddedTracker({
  projectRoot: folder,
  clock: Date.now,
  random: (max) => Math.floor(Math.random() * max),
});
const nullAgent = createScriptedModel({
  turn_ms: 0,
  scripts: [{ turns: [{ say: '', calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'nothing' } }] }] }],
});
const system = createSystem(
  {
    projectRoot: folder,
    cap: 3,
    roleCaps: {},
    queueLimit: 1_000,
    maxTurns: 5,
    maxTokensTotal: null,
    timeoutMs: null,
    maxRetries: 0,
    maxTokens: 100,
    defaultModel: 'scripted',
    credentialVariable: 'OPENAI_API_KEY',
  },
  {
    tracker,
    store,
    workspace: createSharedWorkspace({ projectRoot: folder }),
    selectModel: () => nullAgent,
    environment: {},
    redact: (text) => text,
    now: Date.now,
    log: () => {},
  },
);
await system.start();

const note = { taskId: 'bd-bench', attempt: 0, type: 'log', at: 0, data: '{"text":"x"}', cause: null };
const until = async (taskId, found) => {
  const stop = new AbortController();
  for await (const entry of system.journal.follow({ taskId, after: 0, signal: stop.signal })) if (found(entry)) return;
};
const agentStarted = ({ type, data }) => type === 'snapshot' && data.startsWith('{"machine":"agent"');

const commits = [];
const starts = [];
const whole = [];
for (let run = 0; run < runs; run += 1) {
  commits.push(await timed(() => store.commit({ entries: [note] })));
  const { task_id } = await system.service.create({ description: `task ${run}` });
  const done = until(task_id, ({ type }) => type === 'stream_closed');
  const began = performance.now();
  await system.service.execute({ task: task_id, role: 'engineer', options: {} });
  await until(task_id, agentStarted);
  starts.push(performance.now() - began);
  await done;
  whole.push(performance.now() - began);
}
await system.stop();
store.close();
rmSync(folder, { recursive: true });

const commit = percentile(commits, 0.5);
const row = (name, values) => {
  const [p50, p95] = [percentile(values, 0.5), percentile(values, 0.95)];
  console.log(
    `${name.padEnd(34)} ${p50.toFixed(2).padStart(8)} ${p95.toFixed(2).padStart(8)} ${(p50 / commit).toFixed(1).padStart(8)}`,
  );
};
console.log(`node ${process.version}, ${runs} runs${' '.repeat(14)}   p50 ms   p95 ms  x commit`);
row('one durable commit', commits);
row('execute -> agent started', starts);
row('execute -> complete (null agent)', whole);
