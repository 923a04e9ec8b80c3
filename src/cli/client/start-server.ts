import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../config/config.ts';
import { type Project, stateFiles } from '../config/places/project.ts';
import type { StartServer } from '../invocation.ts';
import { ensurePrivateFolder } from '../server/secrets/private-files.ts';
import { readServerFile } from '../server/server-file.ts';
import { CallError } from './client.ts';
import { findServer, isSilent } from './find-server.ts';

const startMs = 20_000;
const startPollMs = 50;

const isPortFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1' }, () => server.close(() => resolve(true)));
  });

/** Another port, when the default one is in use and the user chose none. */
const portFlags = async (
  project: Project,
  config: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> => {
  const loaded = loadConfig({ config, project }, env);
  if (loaded.portChosen || (await isPortFree(loaded.config.server.port))) return [];
  return ['--port', '0'];
};

const maxLogBytes = 5 * 1024 * 1024;

/** Keeps one old log. */
const rotateLog = (path: string): void => {
  if (fileSize(path) > maxLogBytes) renameSync(path, `${path}.1`);
};

/** Why it ended; a warning that it began with is no cause. */
const endOfLog = (path: string, from: number): string => {
  const lines = readFileSync(path).subarray(from).toString('utf8').trim().split('\n').slice(-5);
  const causes = lines.filter((line) => !line.startsWith('warning: '));
  return (causes.length === 0 ? lines : causes).join('\n');
};

const fileSize = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/**
 * Starts a detached server and waits until it answers. @throws CallError with the last lines of its
 * log when it does not
 */
export const startServer: StartServer = async (project, config, env) => {
  ensurePrivateFolder(project.stateDir);
  const { log } = stateFiles(project.stateDir);
  rotateLog(log);
  const before = fileSize(log);
  const output = openSync(log, 'a', 0o600);
  const script = fileURLToPath(new URL('../agent-server.js', import.meta.url));
  // The server's working folder is another one.
  const file = config ?? (env['AGENT_SERVER_CONFIG'] || undefined);
  const flags = [
    ...(file === undefined ? [] : ['--config', resolve(file)]),
    ...(await portFlags(project, config, env)),
  ];
  const child = spawn(process.execPath, [script, '--server', '--project', project.root, ...flags], {
    detached: true,
    stdio: ['ignore', output, output],
    cwd: project.root,
    env,
  });
  closeSync(output);
  let ended = false;
  let silence: unknown = null;
  child.once('exit', () => {
    ended = true;
  });
  child.unref();
  for (
    const deadline = performance.now() + startMs;
    performance.now() < deadline;
    await delay(startPollMs)
  ) {
    const address = await findServer(project).catch((error: unknown) => {
      if (!isSilent(error)) throw error;
      silence = error;
      return null;
    });
    if (address !== null) {
      // Ours waits for the lock of another one, and would serve when that one stops.
      if (readServerFile(stateFiles(project.stateDir).server)?.pid !== child.pid) child.kill();
      return address;
    }
    if (ended && !(await otherServerStarted(project))) break;
  }
  if (silence !== null) throw silence;
  throw new CallError(
    'server_not_started',
    ended
      ? `the server did not start: ${endOfLog(log, before) || `see ${log}`}`
      : `the server (pid ${child.pid}) is still starting after ${startMs / 1_000} s; see what it does: agent server logs -f`,
  );
};

/** When two servers start at once, one wins, and the loser's client uses the winner. */
const otherServerStarted = async (project: Project): Promise<boolean> => {
  await delay(1_000);
  return (await findServer(project)) !== null;
};
