import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../temporary.ts';

/** Without a version it is another package, of somebody else. */
const wanted = 'emulate@0.12.2';
const isNodeNew = Number(process.versions.node.split('.')[0]) >= 24;
const startsWithinMs = 240_000;
const errorAtMost = 2_000;

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });

const answers = (url: string): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
    ({ ok }) => ok,
    () => false,
  );

/**
 * GitHub as emulate has it, from npm and on a Node of its own, until the test ends.
 *
 * @returns its API, or why npm does not give it
 */
export const startEmulate = async (
  seed: object,
): Promise<{ readonly url: string } | { readonly missing: string }> => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(seed));
  const port = await freePort();
  const packages = isNodeNew ? ['-p', wanted] : ['-p', 'node@24', '-p', wanted];
  const command = `exec emulate start --service github --port ${port} --seed seed.json`;
  const authorities = process.env['AGENT_TEST_CA_CERTS'];
  const child = spawn('npx', ['-y', ...packages, '-c', command], {
    cwd: folder,
    env: {
      ...process.env,
      ...(authorities === undefined ? {} : { NODE_EXTRA_CA_CERTS: authorities }),
    },
    // A group of its own: npx does not pass on a signal to what it runs.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  let isOver = false;
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-errorAtMost);
  });
  child.once('error', (error) => {
    errors += error.message;
    isOver = true;
  });
  child.once('close', () => {
    isOver = true;
  });
  onTestFinished(() => {
    if (child.pid !== undefined && !isOver) process.kill(-child.pid, 'SIGKILL');
  });

  const url = `http://127.0.0.1:${port}`;
  const until = Date.now() + startsWithinMs;
  while (!isOver && Date.now() < until) {
    if (await answers(`${url}/zen`)) return { url };
    await delay(200);
  }
  const why = errors.trim().split('\n').slice(0, 3).join('; ') || 'it does not answer';
  return { missing: `${wanted} or Node 24 cannot be had from npm: ${why}` };
};
