// `agent list` with a running server beside `node -e 0`: the best of many, interleaved.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median, report } from './lib.mjs';

const runs = 25;
const agent = fileURLToPath(new URL('../dist/cli/agent.js', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'agent-bench-'));
mkdirSync(join(root, '.beads'));
const config = join(root, 'config.json');
writeFileSync(
  config,
  JSON.stringify({
    server: { port: 0, register_protocol_handler: false },
    api: { backend: 'scripted' },
  }),
);
const env = { ...process.env, AGENT_STATE_DIR: join(root, 'state'), AGENT_SERVER_CONFIG: config };
const options = { cwd: root, env, stdio: 'ignore' };
const run = (...args) => {
  const began = performance.now();
  const { status } = spawnSync(process.execPath, args, options);
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}`);
  return performance.now() - began;
};

for (let n = 0; n < 20; n += 1)
  execFileSync(process.execPath, [agent, 'create', `task ${n}`], options);
execFileSync(process.execPath, [agent, 'server', 'start'], options);
const [bare, listed, parsed] = [[], [], []];
for (let n = 0; n < runs; n += 1) {
  bare.push(run('-e', '0'));
  listed.push(run(agent, 'list'));
  if (n % 5 === 0) parsed.push(run(agent, 'list', '--start'));
}
execFileSync(process.execPath, [agent, 'server', 'stop'], options);
rmSync(root, { recursive: true });

const best = (values) => Math.min(...values);
report('agent list with a server / node -e 0 (best of 25)', {
  ours: best(listed),
  limit: best(bare),
  ratio: best(listed) / best(bare),
  goal: 1.6,
});
report('  the same, medians', {
  ours: median(listed),
  limit: median(bare),
  ratio: median(listed) / median(bare),
});
report('  the same through the whole command line', {
  ours: median(parsed),
  limit: median(bare),
  ratio: median(parsed) / median(bare),
});
