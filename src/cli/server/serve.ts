import { unlinkSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { createRetention, scheduleRetention } from '../../actors/engine/servers/retention.ts';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import type { Hook } from '../../actors/notify/start-notices.ts';
import type { Sandbox } from '../../actors/sandbox/port.ts';
import type { ProcessLock } from '../../actors/store/process-lock.ts';
import { createAudit } from '../../actors/store/rows/audit-rows.ts';
import { createHistories } from '../../actors/store/rows/histories.ts';
import { createPushConfigs } from '../../actors/store/rows/push-configs.ts';
import { createTokens } from '../../actors/store/rows/token-rows.ts';
import { buildServer } from '../../http/server.ts';
import { forgeRepository } from '../config/places/forge-place.ts';
import { stateFiles } from '../config/places/project.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { a2aRulesFrom } from '../config/settings.ts';
import { heldNotes } from '../config/trusted-places.ts';
import { checkRepository, finishedWorkFor } from '../config/workspace.ts';
import { registerHandler } from '../handler/register.ts';
import { thisProgram } from '../handler/this-program.ts';
import { serverSocketFor } from '../hub/hub-place.ts';
import { registerProject } from '../hub/known-projects.ts';
import { print } from '../output/io.ts';
import { readPage } from '../page/read-page.ts';
import { removeRedirect, removeRedirects } from '../page/redirect-page.ts';
import { exportFromServer } from '../recording/record-task.ts';
import { projectRoleNote } from '../roles/apply-project-roles.ts';
import { serverName, version } from '../version.ts';
import type { Assembled, ServerParts } from './assemble.ts';
import { tellTasks } from './interrupted-commands.ts';
import { listenForHub, listenOnLoopback } from './listen.ts';
import { modelNote } from './models.ts';
import { networkNotes, notesOf } from './notes.ts';
import { stateFolderError } from './secrets/private-files.ts';
import { shortHash } from './secrets/webhook-secrets.ts';
import { readServerFile, type ServerFile } from './server-file.ts';
import { clockOf, sharedLoginsOf } from './shared-store.ts';
import { surroundingsOf } from './surroundings.ts';
import { startTraces } from './traces.ts';

const hooksOf = ({ notify }: Config): readonly Hook[] =>
  notify.commands.flatMap(({ command: [program, ...args], events, timeout_seconds }) =>
    program === undefined
      ? []
      : [
          {
            argv: [program, ...args] as const,
            events: new Set(events),
            timeoutMs: timeout_seconds * 1_000,
          },
        ],
  );

interface Notifications {
  /** Null where no webhook is configured. */
  check(): { readonly ok: boolean; readonly detail: string } | null;
  stop(): Promise<void>;
}

/** Loads the code for notifications only when somebody is told. Runs before any task does. */
const startNotifications = async (
  { current, project, environment, logger, webhooks }: ServerParts,
  { system, store, ledger }: Assembled,
): Promise<Notifications> => {
  const hooks = hooksOf(current.loaded.config);
  if (webhooks.length === 0 && hooks.length === 0)
    return { check: () => null, stop: async () => {} };
  const [{ startNotices }, { createDeliveryCursors }] = await Promise.all([
    import('../../actors/notify/start-notices.ts'),
    import('../../actors/store/rows/delivery-cursors.ts'),
  ]);
  return startNotices({
    webhooks,
    hooks,
    journal: system.journal,
    store,
    cursors: createDeliveryCursors(ledger.db),
    project: { key: shortHash(project.root), name: basename(project.root) },
    cwd: project.stateDir,
    environment,
    now: Date.now,
    log: logger.log,
  });
};

interface BannerFacts {
  readonly version: string;
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly cap: number;
  readonly tracker: string;
  readonly model: string;
  readonly projectRoot: string;
  readonly sandbox: string;
  readonly workspace: string;
  readonly handler: string;
  readonly notes: readonly string[];
}

const banner = ({
  version,
  url,
  host,
  port,
  cap,
  tracker,
  model,
  projectRoot,
  sandbox,
  workspace,
  handler,
  notes,
}: BannerFacts): string =>
  [
    `Agent Task Server ${version}`,
    `  listening on    ${url} (host ${host}, port ${port})`,
    `  project         ${projectRoot}`,
    '  protocol        GET  /a2a/discovery',
    '                  POST /a2a/execute, POST /a2a/status (JSON-RPC 2.0)',
    '  streaming       GET  /stream/:task_id (SSE)',
    '  features        protocol compliance (JSON-RPC 2.0)',
    '                  SSE streaming',
    `                  parallel execution (max ${cap} concurrent)`,
    `                  tracker integration (${tracker})`,
    `  model           ${model}`,
    `  sandbox         ${sandbox}`,
    `  workspace       ${workspace}`,
    ...notes.map((note) => `  note            ${note}`),
    `  agent:// links  ${handler}`,
    '',
  ].join('\n');

/** @throws StateFolderError */
const writeServerFile = (path: string, file: ServerFile): Promise<void> =>
  writeFileAtomically(path, `${JSON.stringify(file, null, 2)}\n`).catch((cause: unknown) => {
    throw stateFolderError(dirname(path), cause);
  });

/** Only if the file is still ours. */
const removeServerFile = (path: string, pid: number): void => {
  if (readServerFile(path)?.pid === pid) unlinkSync(path);
};

export interface ServerLoad {
  readonly running: number;
  readonly waiting: number;
}

export interface Serving {
  readonly url: string;
  /** Counts running agents, and tasks that were asked to run and wait. */
  load(): Promise<ServerLoad>;
  /** Waits for attempts up to the drain timeout, then stops, commits and releases the project. */
  stop(): Promise<void>;
}

const streamHeartbeatMs = 15_000;

const hostNames = (port: number): readonly string[] =>
  ['localhost', '127.0.0.1', '[::1]'].flatMap((name) =>
    port === 80 ? [`${name}:80`, name] : [`${name}:${port}`],
  );

const sandboxLine = (sandbox: Sandbox): string => {
  const { ok } = sandbox.check();
  return ok ? sandbox.describe() : `none, so commands are refused: ${sandbox.describe()}`;
};

const handlerLine = async (wanted: boolean, env: NodeJS.ProcessEnv): Promise<string> =>
  wanted
    ? (await registerHandler(thisProgram(env))).line
    : 'not registered: server.register_protocol_handler is false';

/** Changes after the application is built. */
interface ServingState {
  names: readonly string[];
  draining: boolean;
  webhookCheck: Notifications['check'];
}

const buildApplication = (
  {
    project,
    current,
    tokens,
    redact,
    logger,
    inspection,
    credentials,
    environment,
    interrupted,
    forgeSecret,
    workspace,
  }: ServerParts,
  { tracker, store, system, ledger }: Assembled,
  state: ServingState,
): Promise<FastifyInstance> => {
  const config = () => {
    // Takes what a login has changed since.
    system.settings();
    return current.loaded.config;
  };
  return buildServer({
    system,
    store,
    tracker,
    name: serverName,
    version,
    models: () => [config().api.provider_model, 'scripted'],
    hosts: () => state.names,
    token: () => (config().server.auth === 'none' ? null : tokens.current()),
    proofToken: tokens.current,
    tokenProblem: tokens.problem,
    redact,
    tokenHint: "'agent token' prints the token of this project",
    modelCheck: () => {
      const { paused } = system.slotUse();
      return paused === null ? modelNote(current.loaded, current) : { ok: false, detail: paused };
    },
    webhookCheck: () => state.webhookCheck(),
    forgeSecret,
    configAccepted: () => current.refused === null,
    inspection,
    surroundings: () => ({
      ...surroundingsOf(
        { ...current.loaded, config: current.choose(null).config },
        credentials,
        environment['PATH'],
      ),
      interrupted,
      choice: current.loaded.choice,
      default_provider: current.loaded.defaultProvider,
      config_refused: current.refused ?? undefined,
    }),
    page: readPage(),
    onCodeOver: (code) => removeRedirect(project.stateDir, code),
    projectName: basename(project.root),
    forgeRepository: () => forgeRepository(current.loaded.config.forge, workspace),
    exportTask: exportFromServer(system.service, project.root, redact),
    sharedLogins: sharedLoginsOf(ledger.db),
    now: clockOf(ledger.db),
    heartbeatMs: streamHeartbeatMs,
    draining: () => state.draining,
    mcpAnswer: () => config().mcp.answer,
    a2aRules: () => a2aRulesFrom(config().a2a),
    pushConfigs: createPushConfigs(ledger.db),
    tokens: createTokens(ledger.db),
    audit: createAudit(ledger.db),
    requestsPerSecond: () => config().server.max_requests_per_second,
    streamLimits: () => ({
      inAll: config().server.max_streams,
      perTask: config().server.max_streams_per_task,
    }),
    log: logger.log,
  });
};

const printBanner = async (
  { ownProcess, project, choice, env, current, inspection, sandbox, workspace }: ServerParts,
  { tracker, system }: Assembled,
  {
    url,
    port,
    note,
  }: { readonly url: string; readonly port: number; readonly note: string | null },
): Promise<void> => {
  const { config } = current.loaded;
  const worker = modelNote(current.loaded, current);
  const runsFree = worker.assistant !== undefined && !current.assistants.sandboxed();
  const facts = {
    version,
    url,
    host: config.server.host,
    port,
    cap: system.settings().cap,
    tracker: tracker.name,
    model: worker.detail,
    projectRoot: project.root,
    sandbox: sandboxLine(sandbox),
    workspace: workspace.describe(),
    handler: await handlerLine(config.server.register_protocol_handler, env),
    notes: [
      ...(note === null ? [] : [note]),
      ...(choice.kind === 'sqlite'
        ? []
        : [`tasks and journal are kept in ${choice.address.shown}`]),
      ...(current.loaded.choice === undefined ? [] : [current.loaded.choice]),
      ...notesOf(config),
      ...current.loaded.policyWarnings,
      ...heldNotes(current.trusted),
      ...(runsFree ? [`${worker.assistant} runs outside this sandbox, by sandbox.assistants`] : []),
      ...networkNotes(system.settings(), config),
      ...current.resolved.projectRoles.map(projectRoleNote),
      ...(inspection === null ? [] : ['inspection is on: GET /inspect shows the running machines']),
    ],
  };
  print('stdout', banner(facts), ownProcess);
};

const retentionFor = (
  { project, env, current, workspace }: ServerParts,
  { ledger, store, tracker }: Assembled,
) =>
  createRetention({
    histories: createHistories(ledger.db),
    tracker,
    work: finishedWorkFor(current.loaded.config, project, env, workspace, store),
    reportsFolder: stateFiles(project.stateDir).reports,
    days: () => current.loaded.config.store.retention_days,
    now: Date.now,
  });

const tellRepository = async ({ current, workspace, choice, logger }: ServerParts) => {
  const found = await checkRepository(current.loaded.config, workspace, choice);
  if (found?.status === 'problem')
    logger.log('the common repository cannot be used', { error: found.detail });
  if (found?.status === 'note')
    logger.log('the common repository is not used', { detail: found.detail });
};

/** Lets the hub find this server. The server needs no hub. @returns what leaves it */
const joinHub = async (
  { project, current, logger }: ServerParts,
  app: FastifyInstance,
): Promise<() => void> => {
  const { named } = current.loaded;
  try {
    registerProject(project, named === null ? null : resolve(named));
    return await listenForHub(app, serverSocketFor(project));
  } catch (error) {
    logger.log('the hub cannot reach this server', { error });
    return () => {};
  }
};

/** Listens, starts the system, writes server.json and prints the banner, in this order. */
export const serve = async (
  parts: ServerParts,
  assembled: Assembled,
  lock: ProcessLock,
): Promise<Serving> => {
  const { project, current, logger, ownProcess } = parts;
  const { store, system, ledger } = assembled;
  const files = stateFiles(project.stateDir);
  removeRedirects(project.stateDir);
  const state: ServingState = { names: [], draining: false, webhookCheck: () => null };
  const app = await buildApplication(parts, assembled, state);
  const { named } = current.loaded;
  const { host, port, max_streams, token_file } = current.loaded.config.server;
  const listening = await listenOnLoopback(app, host, port, max_streams);
  state.names = hostNames(listening.port);
  const url = `http://${host === '::1' ? '[::1]' : '127.0.0.1'}:${listening.port}`;
  const traces = await startTraces(parts, assembled);
  const notifications = await startNotifications(parts, assembled);
  state.webhookCheck = notifications.check;
  await system.start();
  tellTasks(parts.interrupted, system.journal);
  // An earlier process may have ended before it wrote the file.
  ledger.exchange.changed();
  // Another server may have changed tasks, whose file this one may keep.
  if (system.servers !== null)
    system.journal.onCommit((entries) => {
      if (entries.some(({ type }) => type === 'snapshot')) ledger.exchange.changed();
    });
  const closeForHub = await joinHub(parts, app);
  await writeServerFile(files.server, {
    url,
    pid: ownProcess.pid,
    version,
    started_at: new Date().toISOString(),
    project: project.root,
    config: named === null ? '' : resolve(named),
    token_file,
  });
  await printBanner(parts, assembled, { url, port: listening.port, note: listening.note });
  // A start does not wait for a network.
  void tellRepository(parts);
  const retention = scheduleRetention(retentionFor(parts, assembled), logger.log);
  const stop = async (): Promise<void> => {
    state.draining = true;
    await Promise.all([retention.stop(), system.drain(parts.drainMs)]);
    removeServerFile(files.server, ownProcess.pid);
    await system.stop();
    await Promise.all([traces.stop(), notifications.stop()]);
    await ledger.exchange
      .stop()
      .catch((error: unknown) =>
        logger.log('could not write the tasks to .beads/issues.jsonl', { error }),
      );
    await app.close();
    listening.close();
    closeForHub();
    store.close();
    lock.release();
  };
  const load = async (): Promise<ServerLoad> => {
    const { running, waiting } = system.slotUse();
    try {
      return { running, waiting: Math.max(0, (await store.pendingCount()) - running) };
    } catch {
      // A store that is away must not keep a server from stopping.
      return { running, waiting };
    }
  };
  return { url, stop, load };
};
