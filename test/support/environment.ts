import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../src/machines/message-of.ts';

/** Where programs are found; the rest is of Vitest, of Node's coverage and ours. */
const kept = /^(PATH|CI|NODE_ENV|TEST|VITEST.*|NODE_V8_COVERAGE|AGENT_TEST_.*|UPDATE_PICTURES)$/;

/**
 * Gives this process, and so each worker and each program of a test, the environment of a machine
 * on which nothing is set up: an empty home, no git identity, no terminal, editor, pager, proxy or
 * key. What a test needs beyond that it sets itself. Temporary files are in a folder of this run,
 * which is removed with it.
 */
export const useStrangersEnvironment = (): void => {
  // Vitest evaluates its configuration for each project, and each worker inherits the variables.
  if (process.env['AGENT_TEST_FOLDER'] !== undefined) return;
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'agent-tests-'));
  // PostgreSQL runs as a user of its own and finds its folders below.
  chmodSync(folder, 0o755);
  process.once('exit', () => {
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    } catch (error) {
      // A program that a test left behind still writes there: no reason for the run to fail.
      process.stderr.write(`the temporary files of this run stay: ${messageOf(error)}\n`);
    }
  });
  const home = join(folder, 'home');
  mkdirSync(home);
  const authorities = process.env['NODE_EXTRA_CA_CERTS'];
  for (const name of Object.keys(process.env)) if (!kept.test(name)) delete process.env[name];
  Object.assign(process.env, {
    AGENT_TEST_FOLDER: folder,
    // Only npm gets them, where the network of this machine has certificates of its own.
    ...(authorities === undefined ? {} : { AGENT_TEST_CA_CERTS: authorities }),
    HOME: home,
    TMPDIR: folder,
    LANG: 'C.UTF-8',
    // Far from UTC, and no full hour: a time in the wrong zone shows.
    TZ: 'Pacific/Chatham',
    GIT_CONFIG_NOSYSTEM: '1',
  });
};
