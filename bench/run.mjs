// Speed as ratios within one run: our own figure beside the limit of the same disk, the same
// process, the same Node. Usage: npm run bench [-- name …]
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const helpers = new Set(['cluster.mjs', 'dbos-worker.mjs', 'lib.mjs', 'run.mjs']);
const wanted = process.argv.slice(2);
const benches = readdirSync(here)
  .filter((file) => file.endsWith('.mjs') && !helpers.has(file))
  .filter((file) => wanted.length === 0 || wanted.includes(file.replace('.mjs', '')));

console.log(`node ${process.version}${' '.repeat(32)}      ours     limit          ratio`);
for (const file of benches) {
  const { status } = spawnSync(process.execPath, ['--expose-gc', `${here}${file}`], {
    stdio: 'inherit',
    timeout: 900_000,
  });
  if (status !== 0) process.exitCode = 1;
}
