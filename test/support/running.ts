import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { expect, onTestFinished } from 'vitest';
import type { Assistants } from '../../src/actors/assistants/assistants.ts';
import type { RoleSettings, Settings } from '../../src/actors/engine/attempts/settings.ts';
import type { SystemPorts } from '../../src/actors/engine/attempts/system-ports.ts';
import { createInspection } from '../../src/actors/engine/queries/inspection.ts';
import type { TaskView } from '../../src/actors/journal/task-view.ts';
import { type Ledger, openLedger } from '../../src/actors/ledger/ledger.ts';
import type { Model } from '../../src/actors/model/port.ts';
import { parseScript } from '../../src/actors/model/script.ts';
import { createScriptedModel } from '../../src/actors/model/scripted.ts';
import { endOrphans } from '../../src/actors/process/orphans.ts';
import { childEnvironment } from '../../src/actors/process/run-command.ts';
import { createResults } from '../../src/actors/results/results.ts';
import type { Sandbox } from '../../src/actors/sandbox/port.ts';
import { createNoSandbox } from '../../src/actors/sandbox/run-sandboxed.ts';
import { openDatabase } from '../../src/actors/store/database.ts';
import type { Store } from '../../src/actors/store/port.ts';
import { createAudit } from '../../src/actors/store/rows/audit-rows.ts';
import { createPushConfigs } from '../../src/actors/store/rows/push-configs.ts';
import { createTokens } from '../../src/actors/store/rows/token-rows.ts';
import type { SqliteStore } from '../../src/actors/store/sqlite.ts';
import { createSystem } from '../../src/actors/system.ts';
import type { Tracker } from '../../src/actors/tracker/port.ts';
import type { Workspace } from '../../src/actors/workspace/port.ts';
import { createSharedWorkspace } from '../../src/actors/workspace/worktrees/select-workspace.ts';
import { exportFromServer } from '../../src/cli/recording/record-task.ts';
import { shippedRoles } from '../../src/cli/roles/read-project-roles.ts';
import { workflowFinder } from '../../src/cli/workflows/find-workflow.ts';
import type { A2aRules } from '../../src/http/a2a/protocol.ts';
import type { AnswerPolicy } from '../../src/http/mcp/backend.ts';
import type { PageFiles } from '../../src/http/page-files.ts';
import { buildServer } from '../../src/http/server.ts';
import { noAssistants } from './assistants.ts';
import { differencesOf } from './differences.ts';
import { embeddedAt } from './ledger.ts';
import { temporaryFolder } from './temporary.ts';

export interface Turn {
  readonly say?: string;
  readonly calls: readonly { readonly tool: string; readonly arguments: object }[];
}

export interface Setting {
  readonly forgeSecret?: string;
  /** Instead of the look at the forge after a delivery. */
  readonly wakeForge?: (repository: string) => Promise<void>;
  readonly mcp?: SystemPorts['mcp'];
  readonly mcpAnswer?: () => AnswerPolicy;
  readonly a2a?: Partial<A2aRules>;
  readonly turns?: readonly Turn[];
  readonly options?: Partial<Settings>;
  /** Changes of every role's built-in profile. */
  readonly role?: Partial<RoleSettings>;
  /** An existing project, for a second server. */
  readonly root?: string;
  readonly stateDir?: string;
  readonly model?: Model | null;
  /** Puts the store far away, or between tries. */
  readonly store?: (near: SqliteStore) => Store;
  readonly onLeaseLost?: () => void;
  /** The name of a server that shares the store with others, which tell each other nothing. */
  readonly sharedAs?: string;
  /** Another tracker than the embedded one. */
  readonly tracker?: (root: string, ledger: Ledger) => Tracker;
  /** Whether the test changes what was saved, so that it is not what the journal leads to. */
  readonly tampered?: boolean;
  readonly sandbox?: Sandbox;
  /** More variables of every child process. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Another workspace than the project's own folder. */
  readonly workspace?: (projectRoot: string, stateDir: string) => Promise<Workspace>;
  /** Assistants for the test; none by default. */
  readonly assistants?: Assistants;
  /** Available while the tasks of an earlier server are being restored. */
  readonly restoring?: boolean;
  readonly heartbeatMs?: number;
  readonly inspect?: boolean;
  readonly requestsPerSecond?: number;
  /** The files of the web page; none by default. */
  readonly page?: PageFiles;
  /** The clock of the page's logins (epoch ms). */
  readonly now?: () => number;
  /** The token of the server. */
  readonly token?: () => string | null;
}

export const finish = (summary = 'done', status = 'done'): Turn => ({
  calls: [{ tool: 'finish', arguments: { status, summary } }],
});

export const bash = (command: string, timeout_seconds = 20): Turn => ({
  calls: [{ tool: 'bash', arguments: { command, timeout_seconds } }],
});

/** A command that ends only when it is killed, after it has written its process id to `pid`. */
export const hang: Turn = {
  calls: [{ tool: 'bash', arguments: { command: 'echo $$ > pid; exec sleep 600' } }],
};

const ownSettings = {
  backend: null,
  model: null,
  maxTurns: null,
  maxTokensTotal: null,
  maxCostUsd: null,
  approvals: [],
  verify: [],
  network: false,
  concurrency: null,
  mcp: [],
};

const rolesWith = (more: Partial<RoleSettings> = {}): Settings['roles'] =>
  Object.fromEntries(
    Object.entries(shippedRoles()).map(([role, profile]) => [
      role,
      { ...profile, ...ownSettings, ...more },
    ]),
  ) as unknown as Settings['roles'];

/** Merges as they are configured by default, without a test. */
export const landingDefaults: Settings['landing'] = {
  notAuthor: false,
  style: 'squash',
  verify: [],
  timeoutMs: 60_000,
  maxBatch: 5,
  onConflict: 'ask',
  onRed: 'ask',
  maxRounds: 2,
  radar: 'show',
  sign: false,
  regenerate: {},
};

/** The settings of a server without a configuration. */
export const bareSettings = (
  role: Partial<RoleSettings> = {},
  options: Partial<Settings> = {},
): Settings => ({
  projectRoot: '/nowhere',
  leaseMs: 120_000,
  cap: 3,
  sharedCap: 3,
  ownRoles: null,
  roles: rolesWith(role),
  backend: 'builtin',
  onInterrupted: 'ask',
  onDependencyFailure: 'wait',
  onQuota: 'park',
  notes: false,
  network: false,
  allowTaskNetwork: false,
  queueLimit: 100,
  maxTurns: 20,
  maxTokensTotal: null,
  maxCostUsd: null,
  budgets: { runUsd: null, dayUsd: null, monthUsd: null },
  merge: 'none',
  landing: landingDefaults,
  sources: [],
  publishing: {
    publish: 'never',
    draft: false,
    pauseMs: [20, 100],
    checksWaitMs: 500,
    onChecks: 'fix',
    onComments: 'fix',
    maxRounds: 3,
    authors: [],
    merge: 'never',
    method: 'squash',
    link: null,
  },
  setup: null,
  idleMs: 1_800_000,
  answerMs: 60_000,
  defaultAnswer: null,
  defaultDecision: null,
  prices: {},
  placeOf: (model) => ({
    ...{
      model,
      baseUrl: null,
      missing: 'OPENAI_API_KEY',
      remedy: 'set it',
      keysProblem: null,
      refusal: null,
    },
    provider: model.includes('/') ? (model.split('/')[0] ?? '') : 'openai',
  }),
  assistantRefusal: () => null,
  bounds: {
    ...{ hosts: true, maxTurns: null, maxTokensTotal: null, maxCostUsd: null },
    ...{ timeoutMs: null, runUsd: null },
  },
  mcpServers: [],
  maxRetries: 0,
  maxModelRetries: 0,
  maxTokens: 1_000,
  contextWindow: null,
  defaultModel: 'scripted',
  ...options,
});

const aloneWith = (name: string): NonNullable<SystemPorts['shared']> => ({
  name,
  facts: { version: '0', startedAt: 0, pool: 3, roles: null },
  onDatabaseLost: () => {},
  notices: { tell: () => {}, on: () => {} },
  calls: () => ({
    ask: () => Promise.reject(new Error('no server answers')),
    answerWith: () => {},
    stop: async () => {},
  }),
});

/**
 * The real system on a folder of its own: embedded tracker, SQLite, shared workspace, scripted
 * model.
 */
export const startSystem = async (setting: Setting = {}) => {
  const root = setting.root ?? temporaryFolder();
  const stateDir = setting.stateDir ?? temporaryFolder();
  const scripts =
    setting.turns === undefined
      ? []
      : [{ turns: setting.turns.map((turn) => ({ say: '', ...turn })) }];
  const scripted = createScriptedModel(parseScript({ scripts }));
  const db = openDatabase({ file: join(stateDir, 'journal.db') });
  const { store, ledger, importThrough } = openLedger({
    db,
    projectRoot: root,
    clock: Date.now,
    log: () => {},
    redact: (text) => text,
  });
  const tracker = setting.tracker?.(root, ledger) ?? embeddedAt(root, {}, ledger);
  const logged: { message: string; facts: Readonly<Record<string, unknown>> }[] = [];
  const log = (message: string, facts: Readonly<Record<string, unknown>>): void =>
    void logged.push({ message, facts });
  const inspection =
    setting.inspect === true ? createInspection((text) => text.replaceAll('hunter2', '***')) : null;
  const system = createSystem(
    bareSettings(setting.role, { projectRoot: root, ...setting.options }),
    {
      tracker,
      store: setting.store?.(store) ?? store,
      workspace:
        (await setting.workspace?.(root, stateDir)) ?? createSharedWorkspace({ projectRoot: root }),
      sandbox: setting.sandbox ?? createNoSandbox(),
      assistants: setting.assistants ?? noAssistants,
      ...(setting.sharedAs === undefined ? {} : { shared: aloneWith(setting.sharedAs) }),
      selectModel: () => (setting.model === undefined ? scripted : setting.model),
      environment: { ...childEnvironment(process.env), ...setting.environment },
      workflows: {
        definition: workflowFinder([join(stateDir, 'config.json')], root),
        reportsFolder: join(stateDir, 'reports'),
      },
      results: createResults(root, (text) => text),
      ...(setting.mcp === undefined ? {} : { mcp: setting.mcp }),
      endOrphans: endOrphans,
      now: () => Date.now(),
      onLeaseLost: setting.onLeaseLost ?? (() => {}),
      log,
      ...(inspection === null ? {} : { inspect: inspection.observe }),
    },
  );
  importThrough(system.journal);
  const starting = system.start();
  if (setting.restoring !== true) await starting;
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    await system.stop();
    const differences = await differencesOf(store);
    await ledger.exchange.stop();
    store.close();
    if (setting.tampered !== true) expect(differences).toEqual([]);
  };
  onTestFinished(stop);
  return {
    root,
    stateDir,
    tracker,
    ledger,
    store,
    system,
    service: system.service,
    inspection,
    logged,
    log,
    stop,
  };
};
export type Running = Awaited<ReturnType<typeof startSystem>>;

/** Resolves with the view when the task has a status; the test's time limit is the deadline. */
export const untilStatus = (
  { system, service }: Running,
  taskId: string,
  ...statuses: readonly string[]
) =>
  new Promise<TaskView>((resolve, reject) => {
    const look = async (): Promise<void> => {
      const view = await service.status(taskId);
      if (!statuses.includes(view.status)) return;
      leave();
      resolve(view);
    };
    const leave = system.journal.onCommit((entries) => {
      if (entries.some((entry) => entry.taskId === taskId)) look().catch(reject);
    });
    look().catch(reject);
  });

export const token = 'test-token-test-token-test-token-test-token';

/** The HTTP server of a running system, on a loopback port. */
export const startServer = async (setting: Setting = {}) => {
  const running = await startSystem(setting);
  let names: readonly string[] = [];
  const audit = createAudit(running.ledger.db);
  const app: FastifyInstance = await buildServer({
    ...running,
    system: { ...running.system, ...(setting.wakeForge && { wakeForge: setting.wakeForge }) },
    name: 'agent-task-server',
    version: '2.1.0',
    forgeRepository: async () => null,
    exportTask: exportFromServer(running.service, running.root, (text) => text),
    models: () => ['scripted'],
    hosts: () => names,
    token: setting.token ?? (() => token),
    proofToken: () => token,
    tokenProblem: () => null,
    configAccepted: () => true,
    redact: (text) => text,
    tokenHint: 'look into the token file',
    modelCheck: () => ({ ok: true, detail: 'scripted' }),
    webhookCheck: () => null,
    forgeSecret: setting.forgeSecret ?? null,
    surroundings: () => ({}),
    heartbeatMs: setting.heartbeatMs ?? 15_000,
    sharedLogins: null,
    mcpAnswer: setting.mcpAnswer ?? (() => 'questions'),
    pushConfigs: createPushConfigs(running.ledger.db),
    tokens: createTokens(running.ledger.db),
    audit,
    a2aRules: () => ({ versions: ['1.0'], isStrict: false, publicUrl: null, ...setting.a2a }),
    page: setting.page ?? new Map(),
    onCodeOver: () => {},
    projectName: 'project',
    now: setting.now ?? Date.now,
    draining: () => false,
    requestsPerSecond: () => setting.requestsPerSecond ?? 1_000_000,
    streamLimits: () => ({ inAll: 10, perTask: 8 }),
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  // A process that a busy machine holds up would send on a connection that the server is closing.
  app.server.keepAliveTimeout = 600_000;
  const address = app.server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  names = [`127.0.0.1:${port}`, `localhost:${port}`];
  onTestFinished(async () => {
    await running.stop();
    await app.close();
  });
  const base = `http://127.0.0.1:${port}`;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = async (body: unknown, path = '/a2a/execute') => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(`${base}${path}`, { method: 'POST', headers, body: text });
    const answer = await response.text();
    return { status: response.status, body: answer === '' ? null : JSON.parse(answer) };
  };
  const call = async (method: string, params: unknown) =>
    (await post({ jsonrpc: '2.0', id: 1, method, params })).body;
  return { ...running, app, port, base, headers, post, call };
};

/** Creates a task, runs it once by an engineer, and waits until it is complete. @returns its id */
export const complete = async (running: Running, title: string): Promise<string> => {
  const { task_id: id } = await running.service.create({ description: title });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'complete');
  return id;
};
