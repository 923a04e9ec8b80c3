// Starts the server from a checkout: builds if necessary, then runs agent-server in the foreground.
// Usage: node scripts/start-server.mjs [--config <file>] [--port <n>] [--max-concurrent <n>]
// [--project <folder>] [--inspect]
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const server = fileURLToPath(new URL('../dist/cli/agent-server.js', import.meta.url));

if (!existsSync(server)) {
  const { status } = spawnSync('npm', ['run', 'build'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) {
    console.error(`the build failed; run npm ci in ${root} first`);
    process.exit(1);
  }
}
const child = spawn(process.execPath, [server, '--server', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.once('exit', (code) => process.exit(code ?? 1));
