import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { hasCode } from '../../actors/files/error-code.ts';
import { isAlive } from '../../actors/process/pid.ts';
import { askSocket, type SocketAsk } from '../../http/hub/ask-socket.ts';
import { isJsonObject, textIn } from '../../machines/json.ts';
import { CallError } from '../client/client.ts';
import { errorInAnswer } from '../client/transport.ts';
import { loadConfig } from '../config/config.ts';
import { ensurePrivateFolder } from '../server/secrets/private-files.ts';
import { version } from '../version.ts';
import type { HubStatus } from './control.ts';
import { hubFiles, hubFolderOf } from './hub-place.ts';

const askMs = 5_000;
const startMs = 10_000;
const stopMs = 10_000;
const pollMs = 50;
const logBytesAtMost = 5 * 1024 * 1024;

const isNobodyThere = (error: unknown): boolean => hasCode(error, 'ENOENT', 'ECONNREFUSED');

const triesAtMost = 4;

/** @throws CallError, also when no hub runs */
export const askHub = async (
  env: NodeJS.ProcessEnv,
  method: SocketAsk['method'],
  path: string,
  tries = 1,
): Promise<unknown> => {
  const socketPath = hubFiles(hubFolderOf(env)).socket;
  try {
    const { status, body } = await askSocket({ socketPath, method, path, withinMs: askMs });
    if (status === 200) return body;
    throw errorInAnswer(body) ?? new CallError('internal', `the hub answered ${status}`);
  } catch (error) {
    if (error instanceof CallError) throw error;
    if (isNobodyThere(error))
      throw new CallError('hub_needed', 'no hub runs; start one with: agent hub start');
    // A hub that ends just now.
    if (hasCode(error, 'ECONNRESET', 'EPIPE') && tries < triesAtMost) {
      await delay(pollMs);
      return askHub(env, method, path, tries + 1);
    }
    throw new CallError('hub_silent', `the hub does not answer: its log says more`, {}, error);
  }
};

/** Null when none runs. @throws CallError when it does not answer */
export const findHub = async (env: NodeJS.ProcessEnv): Promise<HubStatus | null> => {
  const found = await askHub(env, 'GET', '/status').catch((error: unknown) => {
    if (error instanceof CallError && error.code === 'hub_needed') return null;
    throw error;
  });
  const pid = isJsonObject(found) ? Number(found['pid']) : 0;
  const [url, ofVersion, startedAt] = ['url', 'version', 'started_at'].map((key) =>
    textIn(found, key),
  );
  if (url == null || ofVersion == null || startedAt == null) return null;
  return { url, pid, version: ofVersion, started_at: startedAt };
};

/** Null when none runs. @throws CallError */
export const stopHub = async (env: NodeJS.ProcessEnv): Promise<HubStatus | null> => {
  const found = await findHub(env);
  if (found === null) return null;
  await askHub(env, 'POST', '/stop');
  for (const until = performance.now() + stopMs; performance.now() < until; await delay(pollMs))
    if (!isAlive(found.pid)) return found;
  throw new CallError(
    'hub_not_stopped',
    `the hub (pid ${found.pid}) did not stop; end it with: kill -9 ${found.pid}`,
  );
};

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** It lives long and keeps little: without this, what one request leaves stays for hours. */
const nodeFlags = ['--max-semi-space-size=1', '--optimize-for-size'];

/** What belongs to one project, or to one command, is not the hub's. */
const withoutProject = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv => {
  const { AGENT_STATE_DIR: _, AGENT_SERVER_CONFIG: __, AGENT_TOKEN: ___, ...rest } = env;
  return rest;
};

const startProcess = (folder: string, port: number, env: NodeJS.ProcessEnv) => {
  const { log } = hubFiles(folder);
  if (sizeOf(log) > logBytesAtMost) renameSync(log, `${log}.1`);
  const from = sizeOf(log);
  const output = openSync(log, 'a', 0o600);
  const script = fileURLToPath(new URL('../agent-hub.js', import.meta.url));
  const child = spawn(process.execPath, [...nodeFlags, script, String(port)], {
    detached: true,
    stdio: ['ignore', output, output],
    cwd: folder,
    env: withoutProject(env),
  });
  closeSync(output);
  let failed = false;
  child.once('exit', (code) => {
    failed = code !== 0;
  });
  child.unref();
  return {
    hasFailed: () => failed,
    why: () => readFileSync(log).subarray(from).toString('utf8').trim().slice(-1_000),
  };
};

/**
 * The hub of this person, which is started if none runs, and again where it is of another version.
 * Two starts make one. @throws ConfigError, CallError
 */
export const reachHub = async (
  env: NodeJS.ProcessEnv,
  config: string | undefined,
): Promise<HubStatus> => {
  const found = await findHub(env);
  if (found?.version === version) return found;
  // Only the person's own file for every project counts.
  const noProject = { project: { defaultDir: '' }, config };
  const { port } = loadConfig(noProject, withoutProject(env)).config.hub;
  if (found !== null) await stopHub(env);
  const folder = hubFolderOf(env);
  ensurePrivateFolder(folder);
  const started = startProcess(folder, port, env);
  for (const until = performance.now() + startMs; performance.now() < until; await delay(pollMs)) {
    const hub = await findHub(env).catch(() => null);
    if (hub !== null) return hub;
    if (started.hasFailed()) break;
  }
  throw new CallError(
    'hub_not_started',
    `the hub did not start: ${started.why() || `see ${hubFiles(folder).log}`}`,
  );
};
