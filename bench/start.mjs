// CPU time until a program is done, of `dist` (ours) beside `build`, which is not bundled (limit):
// medians, interleaved. BEFORE=<folder of another checkout>: beside its `dist`, and how many kB of
// code each of them loads.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { median, report } from './lib.mjs';

const runs = Number(process.env.RUNS ?? 9);
const place = mkdtempSync(join(tmpdir(), 'agent-bench-'));
const root = join(place, 'project');
const state = join(place, 'state');
const config = join(place, 'config.json');
mkdirSync(join(root, '.beads'), { recursive: true });
const settings = {
  server: { port: 0, register_protocol_handler: false },
  api: { backend: 'scripted' },
};
writeFileSync(config, JSON.stringify(settings));
const env = { ...process.env, AGENT_STATE_DIR: state, AGENT_SERVER_CONFIG: config };

const before = process.env.BEFORE;
const [ours, limit] = [
  fileURLToPath(new URL('../dist', import.meta.url)),
  before === undefined ? fileURLToPath(new URL('../build', import.meta.url)) : join(before, 'dist'),
];
/** The bundles are CommonJS, so the cache of modules has all that was loaded. */
const hook = `data:text/javascript,${encodeURIComponent(`
  import { statSync, writeSync } from 'node:fs';
  import { createRequire } from 'node:module';
  const { cache } = createRequire(${JSON.stringify(import.meta.url)});
  process.on('exit', () => {
    const { user, system } = process.cpuUsage();
    const code = Object.keys(cache).filter((file) => file.endsWith('.js'));
    const bytes = code.reduce((sum, file) => sum + statSync(file).size, 0);
    writeSync(3, JSON.stringify({ cpu: (user + system) / 1_000, kB: bytes / 1_000 }));
  });`)}`;

/** CPU time in ms and loaded code of a run, which `meanwhile` may end. */
const runOf = async (folder, [program, ...words], meanwhile = () => {}) => {
  const file = join(folder, 'cli', `${program}.js`);
  const stdio = ['ignore', 'ignore', 'ignore', 'pipe'];
  const child = spawn(process.execPath, ['--import', hook, file, ...words], {
    cwd: root,
    env,
    stdio,
  });
  const [figures] = await Promise.all([
    text(child.stdio[3]),
    once(child, 'exit'),
    meanwhile(child),
  ]);
  if (child.exitCode !== 0)
    throw new Error(`${folder}: ${program} ${words.join(' ')} ended with ${child.exitCode}`);
  return JSON.parse(figures);
};

const untilHealthy = async () => {
  for (;;) {
    try {
      const { url } = JSON.parse(readFileSync(join(state, 'server.json'), 'utf8'));
      if ((await fetch(`${url}/health`)).ok) return;
    } catch {}
    await sleep(10);
  }
};
const stopWhenHealthy = async (server) => {
  await untilHealthy();
  server.kill('SIGTERM');
};

const compare = async (name, words, meanwhile) => {
  const [first, second] = [[], []];
  for (let n = 0; n < runs; n += 1) {
    first.push(await runOf(ours, words, meanwhile));
    second.push(await runOf(limit, words, meanwhile));
  }
  const both = (figure) => [first, second].map((all) => median(all.map((each) => each[figure])));
  const [cpu, cpuLimit] = both('cpu');
  report(name, { ours: cpu, limit: cpuLimit, ratio: cpu / cpuLimit });
  const [kB, kBLimit] = both('kB');
  if (before !== undefined)
    report('  code that is loaded', { ours: kB, limit: kBLimit, ratio: kB / kBLimit, unit: 'kB' });
};

await compare('agent --version', ['agent', '--version']);
await compare('agent create, without a server', ['agent', 'create', 'A task']);
await compare('agent-server, until it is healthy', ['agent-server', '--server'], stopWhenHealthy);
const program = fileURLToPath(new URL('../dist/cli/agent-server.js', import.meta.url));
const server = spawn(process.execPath, [program, '--server'], {
  cwd: root,
  env,
  stdio: 'ignore',
});
await untilHealthy();
await compare('agent list, with a server', ['agent', 'list']);
await compare('agent list through the whole command line', ['agent', 'list', '--start']);
server.kill('SIGTERM');
await once(server, 'exit');
rmSync(place, { recursive: true });
