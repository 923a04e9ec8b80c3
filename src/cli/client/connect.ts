import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import type { OfflineService } from '../../actors/engine/queries/offline-tasks.ts';
import type { Method } from '../../http/methods.ts';
import type { Caller } from '../../http/people/callers.ts';
import { ownerName } from '../../http/people/names.ts';
import { isServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import { type Project, stateFiles, taskFiles } from '../config/places/project.ts';
import type { StartServer } from '../invocation.ts';
import type { Io } from '../output/io.ts';
import { readServerFile, type ServerFile } from '../server/server-file.ts';
import { CallError, type Client, type MethodName, type Params, type Result } from './client.ts';
import { asGiven, findServer, refusedConfigOf } from './find-server.ts';
import { createHttpClient } from './http-client.ts';
import type { Address } from './transport.ts';

/** A file may be named in several ways. */
const resolvedPath = (file: string): string => {
  try {
    return realpathSync(file);
  } catch {
    return resolve(file);
  }
};

interface NamedConfig {
  readonly source: '--config' | 'AGENT_SERVER_CONFIG';
  readonly file: string;
}

/** Warns that the running server uses another configuration; null if not. */
const configNote = (
  { config: used }: Pick<ServerFile, 'config'>,
  { source, file }: NamedConfig,
): string | null => {
  if (used === undefined || (used !== '' && resolvedPath(used) === resolvedPath(file))) return null;
  const started = used === '' ? 'without one' : `with ${used}`;
  const flag = source === '--config' ? ` --config ${file}` : '';
  return `note: ${source} ${file} does not count: a server runs already, which was started ${started}; to change that: agent server restart${flag}`;
};

export interface Connection {
  /** Starts a server if none runs. @throws CallError with --no-start */
  server(): Promise<Client>;
  /** Uses the project's files when no server runs. */
  files(): Promise<Client>;
  /** Looks for the server again at the next use, for a command that outlives servers. */
  forget(): void;
}

export interface ConnectOptions {
  readonly project: Project;
  readonly config: string | undefined;
  readonly start: boolean;
  /** Takes notes and warnings. */
  readonly io: Pick<Io, 'err' | 'live'>;
  readonly env: NodeJS.ProcessEnv;
  readonly startServer?: StartServer;
}

/** The server's methods on the project's database and files. */
interface Files {
  readonly service: OfflineService;
  readonly methods: Readonly<Record<string, Method>>;
  /** Writes what changed to the project's file. */
  finish(): Promise<void>;
  close(): void;
}

/**
 * Above this many tasks a write takes noticeable time: it is left to the next server or command.
 */
const exportedTasksAtMost = 10_000;

/** The server would refuse it, and end. @throws ConfigError */
const requireConfig = async ({
  project,
  config,
  env,
}: Pick<ConnectOptions, 'project' | 'config' | 'env'>): Promise<void> => {
  const [{ loadConfig }, { requireTrustedOutside }] = await Promise.all([
    import('../config/config.ts'),
    import('../config/trusted-places.ts'),
  ]);
  requireTrustedOutside(loadConfig({ config, project }, env), project, env);
};

const openFiles = async (
  { project, config, env, io }: ConnectOptions,
  mayCreate: boolean,
): Promise<Files> => {
  const [
    { createOfflineService },
    { trackerFor },
    { loadConfig },
    { createOfflineMethods, guardMethods },
    { hasTasks, openTasks },
    { createWorkReads },
    { redactorFor },
    { storeFor },
    { createAudit },
    { createGuard },
  ] = await Promise.all([
    import('../../actors/engine/queries/offline-tasks.ts'),
    import('../config/tracker.ts'),
    import('../config/config.ts'),
    import('../../http/methods.ts'),
    import('./open-tasks.ts'),
    import('../../actors/workspace/worktrees/work-view.ts'),
    import('./redactor.ts'),
    import('../config/store.ts'),
    import('../../actors/store/rows/audit-rows.ts'),
    import('../../http/people/guard.ts'),
  ]);
  const loaded = loadConfig({ config, project }, env).config;
  if (loaded.tracker.bd_path !== undefined) await requireConfig({ project, config, env });
  const workOf = createWorkReads(taskFiles(project).worktrees);
  const redact = redactorFor({ project, env }, loaded);
  const choice = storeFor(loaded, project, env);
  const kept = mayCreate || hasTasks(project, choice);
  const { ledger, store } = await openTasks(project, {
    kept,
    choice,
    redact,
    log: (message) => io.err(`note: ${message}`),
    onProgress: (done, all) =>
      io.live(done < all ? `reading ${done} of ${all} tasks from .beads/issues.jsonl` : ''),
  });
  let isUsed = false;
  const tracker = trackerFor(
    loaded,
    project.root,
    env,
    () => {},
    () => {
      isUsed = true;
      return ledger;
    },
    redact,
  );
  const service = createOfflineService(tracker, store, Date.now, workOf);
  const audit = createAudit(ledger.db);
  return {
    service,
    methods: guardMethods(createOfflineMethods(service), createGuard(audit, Date.now)),
    close: store.close,
    finish: async () => {
      await audit.flush();
      if (!isUsed || !kept) return;
      if ((await ledger.db.ask(ledger.table.count())) > exportedTasksAtMost) return;
      await ledger.exchange.flush().catch((error: unknown) => {
        io.err(
          `warning: it is saved, but .beads/issues.jsonl could not be written: ${messageOf(error)}`,
        );
      });
    },
  };
};

/** Who can open the files of the project is its owner. */
const offlineOwner: Caller = {
  name: ownerName,
  rights: 'admin',
  isOwner: true,
  isSession: false,
  under: '',
  via: 'cli',
  address: 'local',
};

const makesTasks: readonly string[] = ['create', 'import'];

const offlineClient = (options: ConnectOptions): Client => {
  const use = async <Answer>(
    mayCreate: boolean,
    work: (files: Files) => Promise<Answer>,
  ): Promise<Answer> => {
    try {
      const files = await openFiles(options, mayCreate);
      try {
        return await work(files);
      } finally {
        files.close();
      }
    } catch (error) {
      if (isServiceError(error))
        throw new CallError(error.code, error.message, { ...error.facts }, error);
      throw error;
    }
  };
  return {
    live: false,
    call: <Name extends MethodName>(method: Name, params: Params<Name>): Promise<Result<Name>> =>
      use(makesTasks.includes(method), async (files) => {
        const run = files.methods[method];
        if (run === undefined)
          throw new CallError(
            'server_needed',
            `${method} needs a running server; leave out --no-start`,
          );
        const answer = await run(params, { caller: offlineOwner });
        await files.finish();
        return answer as Result<Name>;
      }),
    upload: (image) => use(true, async ({ service }) => (await service.upload(image)).digest),
    frames: () => {
      throw new CallError(
        'server_needed',
        'a live stream needs a running server; leave out --no-start',
      );
    },
  };
};

const lookMethods: readonly string[] = ['list', 'status'];

/** A server may end while it is asked; then its last state is in the files. */
const readsAgain = (client: Client, options: ConnectOptions): Client => ({
  ...client,
  call: async (method, params) => {
    try {
      return await client.call(method, params);
    } catch (error) {
      const isLost = error instanceof CallError && error.code === 'server_lost';
      if (!isLost || !lookMethods.includes(method)) throw error;
      if ((await findServer(options.project)) !== null) throw error;
      return offlineClient(options).call(method, params);
    }
  },
});

/** A file that is named on the line is noted each time, one of the environment by what starts runs. */
const namedConfig = ({ config, env }: ConnectOptions, starts: boolean): NamedConfig | null => {
  if (config !== undefined) return { source: '--config', file: config };
  const file = env['AGENT_SERVER_CONFIG'];
  return starts && file ? { source: 'AGENT_SERVER_CONFIG', file } : null;
};

export const connect = (options: ConnectOptions): Connection => {
  let looked: ReturnType<typeof findServer> | null = null;
  /** Looks once for most commands. */
  const find = () => {
    looked ??= findServer(options.project);
    return looked;
  };
  let isNoted = false;
  const noteConfig = (starts: boolean): void => {
    const named = isNoted ? null : namedConfig(options, starts);
    const server = named && readServerFile(stateFiles(options.project.stateDir).server);
    const note = named && server && configNote(server, named);
    if (note === null) return;
    isNoted = true;
    options.io.err(note);
  };
  let isWarned = false;
  const warnOfRefusal = async (found: Address): Promise<void> => {
    if (isWarned || found.refusesConfig !== true) return;
    isWarned = true;
    options.io.err(`warning: ${await refusedConfigOf(found)}`);
  };
  const connection: Connection = {
    server: async () => {
      const { project, config, start, io, env } = options;
      const found = await find();
      if (found !== null) {
        noteConfig(true);
        await warnOfRefusal(found);
        return createHttpClient(found);
      }
      if (!start)
        throw new CallError(
          'server_needed',
          'no server runs for this project; leave out --no-start, or start one with: agent server start',
        );
      await requireConfig(options);
      io.err("starting a server in the background; 'agent server logs' prints its log");
      const startServer = options.startServer ?? (await import('./start-server.ts')).startServer;
      // The server and its agents have no use for the token of one command.
      const { AGENT_TOKEN: _, ...others } = env;
      const started = asGiven(await startServer(project, config, others), project);
      looked = Promise.resolve(started);
      return createHttpClient(started);
    },
    files: async () => {
      // The rights of a token hold at a server alone.
      if (options.project.token !== undefined) return connection.server();
      const found = await find();
      if (found === null) return offlineClient(options);
      noteConfig(false);
      return readsAgain(createHttpClient(found), options);
    },
    forget: () => {
      looked = null;
    },
  };
  return connection;
};
