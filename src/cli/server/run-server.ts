import { statSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { childEnvironment } from '../../actors/agent/child.ts';
import { gitIdentity } from '../../actors/agent/git-identity.ts';
import { endMarked } from '../../actors/agent/marked.ts';
import type { Assistants } from '../../actors/backends/assistants.ts';
import { createInspection, type Inspection } from '../../actors/inspection.ts';
import type { Model } from '../../actors/model/port.ts';
import { createResults } from '../../actors/results.ts';
import type { Sandbox } from '../../actors/sandbox/port.ts';
import { createSteadyClock } from '../../actors/steady-clock.ts';
import type { Store } from '../../actors/store/port.ts';
import type { ProjectLock } from '../../actors/store/project-lock.ts';
import { createSqliteStore } from '../../actors/store/sqlite.ts';
import { createSystem } from '../../actors/system.ts';
import type { Workspace } from '../../actors/workspace/port.ts';
import { buildServer } from '../../http/server.ts';
import type { LoadedConfig } from '../config.ts';
import { registerHandler } from '../handler/register.ts';
import { thisProgram } from '../handler/this-program.ts';
import { type Project, stateFiles, taskFiles } from '../project.ts';
import { noteOf } from '../roles/apply-project-roles.ts';
import { sandboxFor } from '../sandbox.ts';
import { keyVariable, type ResolvedSettings, resolveSettings } from '../settings.ts';
import { trackerFor } from '../tracker.ts';
import { serverName, version } from '../version.ts';
import { workspaceFor } from '../workspace.ts';
import { assistantsFor, latest, type Surroundings, secretsIn, takeCredentials } from './assistants.ts';
import { banner } from './banner.ts';
import { claimProject } from './claim-project.ts';
import { listenOnLoopback } from './listen.ts';
import { createLogger, type Logger } from './logger.ts';
import { modelNote, modelsFor } from './models.ts';
import { networkNotes, notesOf } from './notes.ts';
import { readToken } from './private-files.ts';
import { createRedactor } from './redact.ts';
import { needsRestart } from './reload.ts';
import { removeServerFile, writeServerFile } from './write-server-file.ts';

export interface RunningServer {
  readonly url: string;
  /** Reads the configuration again and takes what can change while it runs; a bad file changes nothing. */
  reload(): void;
  /** Lets what runs go on for as long as was said, then ends streams, stops it, commits, lets go of the project. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  readonly project: Project;
  /** Reads the configuration, at the start and at every reload. @throws ConfigError */
  readonly load: () => LoadedConfig;
  readonly env: NodeJS.ProcessEnv;
  /** Whether XState's inspector may look on, at GET /inspect. */
  readonly inspect: boolean;
  /** How long running attempts may go on after a signal (ms); then they are parked until the next start. */
  readonly drainMs: number;
}

const heartbeatMs = 15_000;

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

/** What the configuration says now. */
interface Current {
  loaded: LoadedConfig;
  resolved: ResolvedSettings;
  selectModel: (requested: string) => Model | null;
  assistants: Assistants;
}

interface Parts {
  readonly project: Project;
  readonly current: Current;
  readonly token: () => string;
  readonly redact: (text: string) => string;
  readonly logger: Logger;
  readonly inspection: Inspection | null;
  readonly drainMs: number;
  readonly sandbox: Sandbox;
  readonly workspace: Workspace;
  /** The environment of every child process. */
  readonly environment: Readonly<Record<string, string>>;
}

/** While something is pending its deadlines count by the clock of the server that set them. */
const lastMomentOf = (store: Store): number =>
  store.tasks('pending').length === 0 ? 0 : (store.read({ after: store.lastSeq() - 1, limit: 1 })[0]?.at ?? 0);

const assemble = ({ project, current, redact, logger, inspection, sandbox, workspace, environment }: Parts) => {
  const tracker = trackerFor(current.loaded.config, project.root, logger.log);
  const store = createSqliteStore({ file: taskFiles(project).journal, redact });
  const now = createSteadyClock({ wall: Date.now, steady: () => performance.now(), notBefore: lastMomentOf(store) });
  const system = createSystem(current.resolved.settings, {
    tracker,
    store,
    workspace,
    sandbox,
    selectModel: (requested) => current.selectModel(requested),
    assistants: latest(() => current.assistants),
    environment,
    results: createResults(project.root, redact),
    endMarked,
    now,
    log: logger.log,
    ...(inspection === null ? {} : { inspect: inspection.observe }),
  });
  return { tracker, store, system };
};

type Assembled = ReturnType<typeof assemble>;

/**
 * Starts the server of one project: one per project, on loopback, with its token file and server.json in place before
 * it says so.
 * @throws ConfigError, PrivateFileError, AlreadyServedError, PortInUseError
 */
export const runServer = async ({ project, load, env, inspect, drainMs }: ServerOptions): Promise<RunningServer> => {
  const loaded = load();
  const sandbox = sandboxFor(loaded.config);
  const environment = { ...childEnvironment(env), ...gitIdentity(project.root) };
  const credentials = takeCredentials(env);
  const take = takeFrom(project, { credentials, environment, env });
  const current: Current = take(loaded);
  if (!modelNote(loaded.config, current).ok) await current.assistants.lookAgain();
  const lock = await claimProject(project);
  let assembled: Assembled | null = null;
  try {
    const token = tokenReader(stateFiles(project.stateDir).token);
    const redact = createRedactor([...secretsIn(loaded.config, credentials, env), token()]);
    const logger = createLogger(loaded.config.logging, redact);
    const inspection = inspect ? createInspection(redact) : null;
    const workspace = await workspaceFor(loaded.config, project);
    const parts: Parts = {
      project,
      current,
      token,
      redact,
      logger,
      inspection,
      drainMs,
      sandbox,
      workspace,
      environment,
    };
    assembled = assemble(parts);
    const serving = await serve(parts, assembled, lock);
    return { ...serving, reload: () => reload(parts, assembled as Assembled, () => take(load())) };
  } catch (error) {
    assembled?.store.close();
    lock.release();
    throw error;
  }
};

/** What counts of a configuration, with what was taken from the environment when the server started. */
const takeFrom =
  (project: Project, surroundings: Surroundings) =>
  (loaded: LoadedConfig): Current => ({
    loaded,
    resolved: resolveSettings(loaded, project.root),
    selectModel: modelsFor(loaded.config, surroundings.credentials[keyVariable] ?? null),
    assistants: assistantsFor(loaded.config, surroundings),
  });

const reload = ({ current, logger }: Parts, { system }: Assembled, take: () => Current) => {
  try {
    const next = take();
    const { loaded, resolved } = next;
    const kept = needsRestart(current.loaded.config, loaded.config);
    Object.assign(current, next);
    system.reconfigure(resolved.settings);
    logger.configure(loaded.config.logging);
    logger.log('the configuration was read again', {
      file: loaded.file,
      needs_restart: kept,
      project_roles: resolved.projectRoles.map(noteOf),
    });
  } catch (error) {
    logger.log('the configuration is refused; the earlier one stays', { error });
  }
};

const sandboxLine = (sandbox: Sandbox): string => {
  const { ok } = sandbox.check();
  return ok ? sandbox.describe() : `none, so commands are refused: ${sandbox.describe()}`;
};

const handlerLine = async (wanted: boolean): Promise<string> =>
  wanted ? (await registerHandler(thisProgram())).line : 'not registered: server.register_protocol_handler is false';

const serve = async (
  { project, current, token, logger, inspection, drainMs, sandbox, workspace }: Parts,
  { tracker, store, system }: Assembled,
  lock: ProjectLock,
): Promise<Omit<RunningServer, 'reload'>> => {
  const files = stateFiles(project.stateDir);
  const config = () => current.loaded.config;
  let names: readonly string[] = [];
  let draining = false;
  const app: FastifyInstance = await buildServer({
    system,
    store,
    tracker,
    name: serverName,
    version,
    models: () => [config().api.provider_model, 'scripted'],
    hosts: () => names,
    token: () => (config().server.auth === 'none' ? null : token()),
    proofToken: token,
    tokenHint: `the token of this project is in ${files.token}`,
    modelCheck: () => {
      const { paused } = system.load();
      return paused === null ? modelNote(config(), current) : { ok: false, detail: paused };
    },
    inspection,
    heartbeatMs,
    draining: () => draining,
    streamLimits: () => ({ inAll: config().server.max_streams, perTask: config().server.max_streams_per_task }),
    log: logger.log,
  });
  const { host, port } = config().server;
  const listening = await listenOnLoopback(app, host, port, config().server.max_streams);
  names = hostNames(listening.port);
  const url = `http://${host === '::1' ? '[::1]' : '127.0.0.1'}:${listening.port}`;
  await system.start();
  await writeServerFile(files.server, {
    url,
    pid: process.pid,
    version,
    started_at: new Date().toISOString(),
    project: project.root,
  });
  const worker = modelNote(config(), current);
  process.stdout.write(
    banner({
      version,
      url,
      host,
      port: listening.port,
      cap: system.settings().cap,
      tracker: tracker.name,
      model: worker.detail,
      projectRoot: project.root,
      sandbox: sandboxLine(sandbox),
      workspace: workspace.describe(),
      handler: await handlerLine(config().server.register_protocol_handler),
      notes: [
        ...(listening.note === null ? [] : [listening.note]),
        ...notesOf(config()),
        ...(worker.assistant === undefined
          ? []
          : [`${worker.assistant} works outside of this sandbox, see docs/backends.md`]),
        ...networkNotes(system.settings(), config()),
        ...current.resolved.projectRoles.map(noteOf),
        ...(inspection === null ? [] : ['inspected: GET /inspect shows the live machines']),
      ],
    }),
  );
  const stop = async (): Promise<void> => {
    draining = true;
    await system.drain(drainMs);
    removeServerFile(files.server, process.pid);
    await system.stop();
    await app.close();
    listening.close();
    store.close();
    lock.release();
  };
  return { url, stop };
};
