import { existsSync } from 'node:fs';
import type { OfflineService } from '../../actors/engine/offline-tasks.ts';
import { isServiceError } from '../../machines/errors.ts';
import { type Project, stateFiles, taskFiles } from '../config/project.ts';
import type { Io } from '../output/io.ts';
import { CallError, type Client } from './client.ts';
import { findServer } from './find-server.ts';
import { createHttpClient } from './http-client.ts';

export interface Connection {
  /** Starts a server if none runs. @throws CallError with --no-start */
  server(): Promise<Client>;
  /** Uses the project's files when no server runs. */
  files(): Promise<Client>;
}

export interface ConnectOptions {
  readonly project: Project;
  readonly config: string | undefined;
  readonly start: boolean;
  readonly io: Io;
  readonly env: NodeJS.ProcessEnv;
}

type Params = Readonly<Record<string, unknown>>;

const offlineClient = (service: OfflineService, methods: OfflineMethods): Client => ({
  live: false,
  call: async (method, params) => {
    const run = methods(service)[method];
    if (run === undefined)
      throw new CallError('server_needed', `${method} needs a running server; leave out --no-start`);
    try {
      return await run(params);
    } catch (error) {
      if (isServiceError(error)) throw new CallError(error.code, error.message, { ...error.facts }, error);
      throw error;
    }
  },
  frames: () => {
    throw new CallError('server_needed', 'a live stream needs a running server; leave out --no-start');
  },
});
type OfflineMethods = (service: OfflineService) => Readonly<Record<string, (params: Params) => Promise<unknown>>>;

const openFiles = async ({ project, config, env }: ConnectOptions): Promise<Client> => {
  const [{ createOfflineService }, { trackerFor }, { loadConfig }, { createSqliteStore }, { createOfflineMethods }] =
    await Promise.all([
      import('../../actors/engine/offline-tasks.ts'),
      import('../config/tracker.ts'),
      import('../config/config.ts'),
      import('../../actors/store/sqlite.ts'),
      import('../../http/methods.ts'),
    ]);
  const { journal } = taskFiles(project);
  const tracker = trackerFor(loadConfig({ config }, env).config, project.root, env, () => {});
  const store = existsSync(journal) ? createSqliteStore({ file: journal, readonly: true }) : null;
  return offlineClient(createOfflineService(tracker, store, Date.now), createOfflineMethods);
};

export const connect = (options: ConnectOptions): Connection => ({
  server: async () => {
    const { project, config, start, io, env } = options;
    const found = await findServer(project);
    if (found !== null) return createHttpClient(found);
    if (!start)
      throw new CallError('server_needed', 'no server runs for this project; start one with agent-server --server');
    const { startServer } = await import('./start-server.ts');
    io.err(`starting a server for ${project.root} (log: ${stateFiles(project.stateDir).log})`);
    return createHttpClient(await startServer(project, config, env));
  },
  files: async () => {
    const found = await findServer(options.project);
    return found === null ? openFiles(options) : createHttpClient(found);
  },
});
