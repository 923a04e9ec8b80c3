// What the benches share: a system on a folder of its own, and the arithmetic of one run.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openLedger } from '../build/actors/ledger/ledger.js';
import { createScriptedModel } from '../build/actors/model/scripted.js';
import { endOrphans } from '../build/actors/process/orphans.js';
import { childEnvironment } from '../build/actors/process/run-command.js';
import { createResults } from '../build/actors/results/results.js';
import { createNoSandbox } from '../build/actors/sandbox/run-sandboxed.js';
import { openDatabase } from '../build/actors/store/database.js';
import { createPushConfigs } from '../build/actors/store/rows/push-configs.js';
import { createSystem } from '../build/actors/system.js';
import { createEmbeddedTracker } from '../build/actors/tracker/embedded/embedded.js';
import {
  chooseWorkspace,
  createSharedWorkspace,
} from '../build/actors/workspace/worktrees/select-workspace.js';
import { readPage } from '../build/cli/page/read-page.js';
import { shippedRoles } from '../build/cli/roles/read-project-roles.js';
import { buildServer } from '../build/http/server.js';

export const percentile = (values, share) =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)];
export const median = (values) => percentile(values, 0.5);

export const timed = async (work) => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};

/** CPU time of this process in ms, user and system. */
export const cpuMs = (since) => {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
};

const plain = {
  model: null,
  maxTurns: null,
  maxTokensTotal: null,
  maxCostUsd: null,
  approvals: [],
  verify: [],
  network: false,
  concurrency: null,
  backend: null,
  mcp: [],
};
const roles = Object.fromEntries(
  Object.entries(shippedRoles()).map(([role, profile]) => [role, { ...profile, ...plain }]),
);
const finish = {
  say: '',
  calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'nothing' } }],
};

/** The tasks of a project, with their database in the project itself. */
export const openTasks = (folder, file = join(folder, 'journal.db')) => {
  const opened = openDatabase({ file });
  let writes = 0;
  const write = (work) => {
    writes += 1;
    return opened.write(work);
  };
  const db = { ...opened, write };
  const { store, ledger } = openLedger({
    db,
    projectRoot: folder,
    clock: Date.now,
    log: () => {},
    redact: (text) => text,
  });
  const random = (max) => Math.floor(Math.random() * max);
  const tracker = createEmbeddedTracker({ clock: Date.now, random }, ledger);
  /** How many transactions there were, each one durable commit. */
  return { db, store, ledger, tracker, writes: () => writes };
};

/** Worktrees of a repository with so many files, as `workspace` of `openSystem`. */
export const openWorktrees = (files) => {
  const environment = childEnvironment(process.env);
  const folder = mkdtempSync(join(tmpdir(), 'agent-bench-worktrees-'));
  const workspace = (projectRoot) => {
    const git = (...args) =>
      execFileSync('git', ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost', ...args], {
        cwd: projectRoot,
        stdio: 'ignore',
      });
    git('init', '--quiet', '--initial-branch=main');
    writeFileSync(join(projectRoot, '.gitignore'), 'journal.db*\n');
    for (let n = 0; n < files; n += 1) writeFileSync(join(projectRoot, `file-${n}.txt`), `${n}\n`);
    git('add', '--all');
    git('commit', '--quiet', '--message', 'a project');
    return chooseWorkspace({ mode: 'worktree', projectRoot, folder, copies: [], environment });
  };
  return { workspace, remove: () => rmSync(folder, { recursive: true, force: true }) };
};

/**
 * The real system; its agent answers `finish` at once, unless `scripts` say otherwise. `workspace`
 * is given the project and a folder for the worktrees, and makes another one than the project's own
 * folder.
 */
export const openSystem = async (
  options = {},
  { scripts = [{ turns: [finish] }], turnMs = 0, workspace, forge, wrap = (model) => model } = {},
) => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-bench-'));
  const { db, store, ledger, tracker, writes } = openTasks(folder);
  const model = wrap(createScriptedModel({ turn_ms: turnMs, scripts }));
  const system = createSystem(
    {
      projectRoot: folder,
      leaseMs: 120_000,
      cap: 3,
      roles,
      onInterrupted: 'ask',
      onDependencyFailure: 'wait',
      onQuota: 'park',
      notes: false,
      allowTaskNetwork: false,
      queueLimit: 1_000_000,
      maxTurns: 5,
      maxTokensTotal: null,
      maxCostUsd: null,
      backend: 'builtin',
      merge: 'none',
      landing: {
        ...{ style: 'squash', verify: [], timeoutMs: 120_000, maxBatch: 5, maxRounds: 2 },
        ...{ onConflict: 'ask', onRed: 'ask', radar: 'off', regenerate: {}, sign: false },
      },
      sources: [],
      publishing: {
        ...{ publish: 'never', draft: false, pauseMs: [10_000, 300_000], checksWaitMs: 120_000 },
        ...{ onChecks: 'fix', onComments: 'fix', maxRounds: 3, authors: [], merge: 'never' },
        ...{ method: 'squash', link: null },
      },
      setup: null,
      idleMs: 1_800_000,
      answerMs: 60_000,
      defaultAnswer: null,
      defaultDecision: null,
      prices: {},
      budgets: { runUsd: null, dayUsd: null, monthUsd: null },
      mcpServers: [],
      maxRetries: 0,
      maxModelRetries: 0,
      maxTokens: 100,
      contextWindow: null,
      defaultModel: 'scripted',
      placeOf: (model) => ({
        ...{ model, baseUrl: null, missing: 'OPENAI_API_KEY', remedy: '' },
        ...{ keysProblem: null, refusal: null },
      }),
      assistantRefusal: () => null,
      bounds: {
        ...{ hosts: true, maxTurns: null, maxTokensTotal: null, maxCostUsd: null },
        ...{ timeoutMs: null, runUsd: null },
      },
      ...options,
    },
    {
      tracker,
      store,
      workspace: (await workspace?.(folder)) ?? createSharedWorkspace({ projectRoot: folder }),
      sandbox: createNoSandbox(),
      selectModel: () => model,
      assistants: {
        of: () => null,
        problem: () => null,
        loggedIn: () => null,
        lookAgain: async () => {},
        environmentOf: () => ({}),
      },
      environment: childEnvironment(process.env),
      workflows: { definition: () => 'no workflow', reportsFolder: join(folder, 'reports') },
      results: createResults(folder, (text) => text),
      endOrphans,
      now: Date.now,
      onLeaseLost: () => {},
      log: () => {},
      ...(forge && { forge }),
    },
  );
  await system.start();
  const close = async () => {
    await system.stop();
    await ledger.exchange.stop();
    store.close();
    rmSync(folder, { recursive: true });
  };
  return { folder, db, store, ledger, tracker, writes, system, close };
};

/** The HTTP face of a system, on a free port; `more` adds routes before it listens. */
export const openServer = async (
  { db, system, store, tracker },
  { token, streams = 10, more = () => {} },
) => {
  let names = [];
  const app = await buildServer({
    system,
    store,
    tracker,
    name: 'bench',
    version: '0',
    onCodeOver: () => {},
    projectName: 'bench',
    page: readPage(),
    now: Date.now,
    models: () => [],
    hosts: () => names,
    token: () => token,
    proofToken: () => token,
    tokenHint: '',
    modelCheck: () => ({ ok: true, detail: '' }),
    webhookCheck: () => null,
    forgeSecret: null,
    mcpAnswer: () => 'questions',
    tokenProblem: () => null,
    inspection: null,
    surroundings: () => ({}),
    a2aRules: () => ({ versions: ['1.0'], isStrict: false, publicUrl: null }),
    pushConfigs: createPushConfigs(db),
    heartbeatMs: 15_000,
    sharedLogins: null,
    draining: () => false,
    requestsPerSecond: () => 1_000_000,
    streamLimits: () => ({ inAll: streams, perTask: streams }),
    redact: (text) => text,
    log: () => {},
  });
  more(app);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address();
  names = [`127.0.0.1:${port}`];
  return { port, close: () => app.close() };
};

/** Resolves when the journal tells of an entry of the task that fits. */
export const until = (system, taskId, fits) =>
  new Promise((resolve) => {
    const leave = system.journal.onCommit((entries) => {
      if (!entries.some((entry) => entry.taskId === taskId && fits(entry))) return;
      leave();
      resolve();
    });
  });

/** One row of a report: what was measured beside its limit. */
export const report = (name, { ours, limit, ratio, goal, unit = 'ms' }) => {
  const shown = (value) =>
    (value === undefined ? '' : value >= 100 ? value.toFixed(0) : value.toFixed(2)).padStart(9);
  const verdict = goal === undefined ? '' : `   goal ${goal}  ${ratio <= goal ? 'met' : 'NOT MET'}`;
  console.log(
    `${name.padEnd(46)} ${shown(ours)} ${shown(limit)} ${unit.padEnd(5)} ${shown(ratio)}${verdict}`,
  );
};
