// CPU time until a program is done, of `dist` (ours) beside `build`, which is not bundled (limit):
// medians, interleaved.
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

const writeCpu =
  'writeSync(3, String((process.cpuUsage().user + process.cpuUsage().system) / 1000))';
const hook = `data:text/javascript,import { writeSync } from 'node:fs'; process.on('exit', () => ${writeCpu});`;

/** CPU time in ms of a run, which `meanwhile` may end. */
const cpuOf = async (folder, [program, ...words], meanwhile = () => {}) => {
  const file = fileURLToPath(new URL(`../${folder}/cli/${program}.js`, import.meta.url));
  const stdio = ['ignore', 'ignore', 'ignore', 'pipe'];
  const child = spawn(process.execPath, ['--import', hook, file, ...words], {
    cwd: root,
    env,
    stdio,
  });
  const [cpu] = await Promise.all([text(child.stdio[3]), once(child, 'exit'), meanwhile(child)]);
  if (child.exitCode !== 0)
    throw new Error(`${folder}: ${program} ${words.join(' ')} ended with ${child.exitCode}`);
  return Number(cpu);
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
  const [ours, limit] = [[], []];
  for (let n = 0; n < runs; n += 1) {
    ours.push(await cpuOf('dist', words, meanwhile));
    limit.push(await cpuOf('build', words, meanwhile));
  }
  report(name, { ours: median(ours), limit: median(limit), ratio: median(ours) / median(limit) });
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
