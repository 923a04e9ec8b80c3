import { randomInt } from 'node:crypto';
import { statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { childEnvironment } from '../../actors/agent/child.ts';
import type { Model } from '../../actors/model/port.ts';
import { lockProject, type ProjectLock } from '../../actors/store/project-lock.ts';
import { createSqliteStore } from '../../actors/store/sqlite.ts';
import { createSystem } from '../../actors/system.ts';
import { createEmbeddedTracker } from '../../actors/tracker/embedded.ts';
import { createSharedWorkspace } from '../../actors/workspace/shared.ts';
import { buildServer } from '../../http/server.ts';
import type { Role } from '../../machines/task.ts';
import { effectiveCap, type LoadedConfig } from '../config.ts';
import type { Config } from '../config-schema.ts';
import { type Project, stateFiles } from '../project.ts';
import { serverName, version } from '../version.ts';
import { banner } from './banner.ts';
import { listenOnLoopback } from './listen.ts';
import { createLog, type Log } from './logger.ts';
import { keyVariable, modelNote, modelsFor, takeKey } from './models.ts';
import { ensurePrivateFolder, readToken } from './private-files.ts';
import { createRedactor } from './redact.ts';
import { readServerFile, removeServerFile, writeServerFile } from './server-file.ts';

export class AlreadyServedError extends Error {
  override readonly name = 'AlreadyServedError';
}

export interface RunningServer {
  readonly url: string;
  /** Ends streams, stops what runs, commits, lets go of the project. */
  stop(): Promise<void>;
}

const heartbeatMs = 15_000;
const lockMs = 5_000;
const lockPollMs = 50;

const roleCaps = ({ roles }: Config): Partial<Record<Role, number>> =>
  Object.fromEntries(
    Object.entries(roles).flatMap(([role, limits]) =>
      limits?.concurrency === undefined ? [] : [[role, limits.concurrency]],
    ),
  );

/** The token as the file holds it now: a rotated token counts at once (rule R5). */
const tokenReader = (path: string): (() => string) => {
  let stamp = '';
  let token = readToken(path);
  return () => {
    const { mtimeMs, ino } = statSync(path);
    if (stamp !== `${mtimeMs}/${ino}`) token = readToken(path);
    stamp = `${mtimeMs}/${ino}`;
    return token;
  };
};

const hostNames = (port: number): readonly string[] =>
  ['localhost', '127.0.0.1', '[::1]'].flatMap((name) => (port === 80 ? [`${name}:80`, name] : [`${name}:${port}`]));

interface Parts {
  readonly project: Project;
  readonly config: Config;
  readonly selectModel: (requested: string) => Model | null;
  readonly redact: (text: string) => string;
  readonly log: Log;
}

const assemble = ({ project, config, selectModel, redact, log }: Parts) => {
  const now = (): number => Date.now();
  const tracker = createEmbeddedTracker({ projectRoot: project.root, clock: now, random: (max) => randomInt(max) });
  const store = createSqliteStore({ file: stateFiles(project.stateDir).journal, redact });
  const { agent, api, server } = config;
  const system = createSystem(
    {
      projectRoot: project.root,
      cap: effectiveCap(config),
      roleCaps: roleCaps(config),
      queueLimit: server.queue_limit,
      maxTurns: agent.max_turns,
      maxTokensTotal: agent.max_tokens_total,
      timeoutMs: agent.timeout_seconds === undefined ? null : agent.timeout_seconds * 1_000,
      maxRetries: agent.max_retries,
      maxTokens: api.max_tokens,
      defaultModel: api.backend === 'scripted' ? 'scripted' : api.provider_model,
      credentialVariable: keyVariable,
    },
    {
      tracker,
      store,
      workspace: createSharedWorkspace({ projectRoot: project.root }),
      selectModel,
      environment: childEnvironment(process.env),
      redact,
      now,
      log,
    },
  );
  return { tracker, store, system };
};

const runs = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** Takes the project's lock. One that is about to be free, because its server is stopping, is waited for. */
const claimProject = async ({ stateDir, root }: Project): Promise<ProjectLock> => {
  ensurePrivateFolder(stateDir);
  const files = stateFiles(stateDir);
  const deadline = Date.now() + lockMs;
  for (;;) {
    const lock = lockProject(files.lock);
    if (lock !== null) return lock;
    const other = readServerFile(files.server);
    const named = other !== null && runs(other.pid);
    if (!named && Date.now() < deadline) {
      await delay(lockPollMs);
      continue;
    }
    const who = other === null ? 'another process' : `the server at ${other.url} (pid ${other.pid})`;
    throw new AlreadyServedError(`${root} is already served by ${who}; stop it first`);
  }
};

/**
 * Starts the server of one project: one per project, on loopback, with its token file and server.json in place before
 * it says so.
 * @throws ConfigError, PrivateFileError, AlreadyServedError, PortInUseError
 */
export const runServer = async (
  project: Project,
  { config }: LoadedConfig,
  env: NodeJS.ProcessEnv,
): Promise<RunningServer> => {
  const key = takeKey(env);
  const selectModel = modelsFor(config, key);
  const lock = await claimProject(project);
  const files = stateFiles(project.stateDir);
  let parts: ReturnType<typeof assemble> | null = null;
  try {
    const token = tokenReader(files.token);
    const redact = createRedactor([key, token()]);
    const log = createLog(config, redact);
    parts = assemble({ project, config, selectModel, redact, log });
    return await serve({ project, config, selectModel, redact, log }, parts, token, lock);
  } catch (error) {
    parts?.store.close();
    lock.release();
    throw error;
  }
};

const serve = async (
  { project, config, selectModel, log }: Parts,
  { tracker, store, system }: ReturnType<typeof assemble>,
  token: () => string,
  lock: ProjectLock,
): Promise<RunningServer> => {
  const files = stateFiles(project.stateDir);
  const cap = effectiveCap(config);
  let names: readonly string[] = [];
  let draining = false;
  const app: FastifyInstance = await buildServer({
    system,
    store,
    tracker,
    name: serverName,
    version,
    maxConcurrent: cap,
    models: [config.api.provider_model, 'scripted'],
    hosts: () => names,
    token: () => (config.server.auth === 'none' ? null : token()),
    proofToken: token,
    tokenHint: `the token of this project is in ${files.token}`,
    modelCheck: () => ({
      ok: selectModel(config.api.provider_model) !== null,
      detail: modelNote(config, selectModel),
    }),
    heartbeatMs,
    draining: () => draining,
    streamLimits: { inAll: config.server.max_streams, perTask: config.server.max_streams_per_task },
    log,
  });
  const { host } = config.server;
  const listening = await listenOnLoopback(app, host, config.server.port);
  names = hostNames(listening.port);
  const url = `http://${host === '::1' ? '[::1]' : '127.0.0.1'}:${listening.port}`;
  await system.start();
  await writeServerFile(files.server, {
    url,
    pid: process.pid,
    version,
    started_at: new Date().toISOString(),
  });
  process.stdout.write(
    banner({
      version,
      url,
      host,
      port: listening.port,
      cap,
      tracker: tracker.name,
      model: modelNote(config, selectModel),
      projectRoot: project.root,
      notes: notesOf(config, cap, listening.note),
    }),
  );
  const stop = async (): Promise<void> => {
    draining = true;
    removeServerFile(files.server, process.pid);
    await system.stop();
    await app.close();
    listening.close();
    store.close();
    lock.release();
  };
  return { url, stop };
};

const notesOf = (config: Config, cap: number, bound: string | null): readonly string[] => [
  ...(bound === null ? [] : [bound]),
  ...(cap < config.server.max_concurrent_agents
    ? [`server.worker_pool_size ${cap} caps max_concurrent_agents ${config.server.max_concurrent_agents}`]
    : []),
  ...(config.server.auth === 'none' ? ['server.auth is none: every local program may use this server'] : []),
];
