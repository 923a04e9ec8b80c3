// `agent list --limit 50` with a running server beside `node -e 0`: the best of many, interleaved;
// among 1,000 and among 100,000 tasks.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median, report } from './lib.mjs';

const runs = 25;
const agent = fileURLToPath(new URL('../dist/cli/agent.js', import.meta.url));

const issue = (n) =>
  JSON.stringify({
    id: `bd-${(n + 46_656).toString(36)}`,
    title: `task ${n}`,
    description: `what task ${n} is about`,
    status: n % 3 === 0 ? 'closed' : 'open',
    priority: 2,
    issue_type: 'task',
    created_at: new Date(1_760_000_000_000 + n * 1_000).toISOString(),
    updated_at: new Date(1_760_000_000_000 + n * 1_000).toISOString(),
  });

const measure = (count) => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-bench-'));
  const root = join(folder, 'project');
  mkdirSync(join(root, '.beads'), { recursive: true });
  const lines = Array.from({ length: count }, (_, n) => issue(n));
  writeFileSync(join(root, '.beads', 'issues.jsonl'), `${lines.join('\n')}\n`);
  const config = join(folder, 'config.json');
  const server = { port: 0, register_protocol_handler: false };
  writeFileSync(config, JSON.stringify({ server, api: { backend: 'scripted' } }));
  const state = join(folder, 'state');
  const env = { ...process.env, AGENT_STATE_DIR: state, AGENT_SERVER_CONFIG: config };
  const options = { cwd: root, env, stdio: 'ignore' };
  const run = (...args) => {
    const began = performance.now();
    const { status } = spawnSync(process.execPath, args, options);
    if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}`);
    return performance.now() - began;
  };

  execFileSync(process.execPath, [agent, 'server', 'start'], options);
  const [bare, listed] = [[], []];
  try {
    for (let n = 0; n < runs; n += 1) {
      bare.push(run('-e', '0'));
      listed.push(run(agent, 'list', '--limit', '50'));
    }
  } finally {
    execFileSync(process.execPath, [agent, 'server', 'stop'], options);
    rmSync(folder, { recursive: true });
  }
  return { bare, listed };
};

const best = (values) => Math.min(...values);
for (const count of [1_000, 100_000]) {
  const { bare, listed } = measure(count);
  const of = `agent list --limit 50 of ${count} tasks, with a server / node -e 0`;
  report(`${of} (best of ${runs})`, {
    ours: best(listed),
    limit: best(bare),
    ratio: best(listed) / best(bare),
    goal: 1.3,
  });
  report('  the same, medians', {
    ours: median(listed),
    limit: median(bare),
    ratio: median(listed) / median(bare),
  });
}
