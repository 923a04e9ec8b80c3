import type { RoleProfile } from '../../src/actors/agent/prompt.ts';
import type { Assistants } from '../../src/actors/assistants/assistants.ts';
import type { Settings } from '../../src/actors/engine/attempts/settings.ts';
import { createSystem, type System } from '../../src/actors/system.ts';
import { type Role, roles } from '../../src/machines/task.ts';
import type { Rules } from './invariants.ts';
import { workspaceOf } from './simulated-workspace.ts';
import {
  type Life,
  modelOf,
  resultsOf,
  sandboxOf,
  storeOf,
  trackerOf,
  verifyCommand,
  type World,
} from './world.ts';

/** A server of the simulated world, from its start to its end. */
export interface Server extends Life {
  readonly system: System;
}

const own = {
  model: null,
  maxTurns: null,
  maxTokensTotal: null,
  maxCostUsd: null,
  approvals: [] as readonly string[],
  verify: [] as readonly string[],
  concurrency: null as number | null,
  mcp: [],
  backend: null,
  network: false,
};

export interface Plan extends Rules {
  readonly maxModelRetries: number;
  /** How long an agent waits for a person (ms); 0: without limit. */
  readonly answerMs: number;
  readonly onDependencyFailure: 'wait' | 'fail';
  readonly approvals: boolean;
  readonly verifies: boolean;
  /** An attempt merges its work at its end. */
  readonly mergesAtEnd: boolean;
  /** How many are tested together, at most. */
  readonly maxBatch: number;
}

const profileOf = (role: Role): RoleProfile => ({
  role,
  description: role,
  tools: ['read', 'write', 'edit', 'bash', 'grep', 'find', 'ask', 'finish'],
  timeoutMs: 60_000,
  prompt: `You are the ${role}.`,
  criteria: [],
  projectNotes: null,
});

const settingsFor = (plan: Plan): Settings => {
  const roleSettings = Object.fromEntries(
    roles.map((role) => [
      role,
      {
        ...profileOf(role),
        ...own,
        ...(role === 'tester' && plan.verifies ? { verify: [verifyCommand] } : {}),
        ...(role === 'engineer'
          ? { concurrency: plan.roleCap, approvals: plan.approvals ? ['bash'] : [] }
          : {}),
      },
    ]),
  ) as unknown as Record<Role, Settings['roles'][Role]>;
  return {
    projectRoot: '/simulated',
    leaseMs: 120_000,
    cap: plan.cap,
    sharedCap: plan.cap,
    ownRoles: null,
    roles: roleSettings,
    onInterrupted: plan.onInterrupted,
    onQuota: 'park',
    network: false,
    onDependencyFailure: plan.onDependencyFailure,
    notes: false,
    allowTaskNetwork: false,
    queueLimit: 100,
    maxTurns: 12,
    maxTokensTotal: null,
    maxCostUsd: null,
    budgets: { runUsd: null, dayUsd: null, monthUsd: null },
    backend: 'builtin',
    merge: plan.mergesAtEnd ? 'squash' : 'none',
    sources: [],
    publishing: {
      publish: 'never',
      draft: false,
      pauseMs: [10_000, 300_000],
      checksWaitMs: 0,
      onChecks: 'fix',
      onComments: 'fix',
      maxRounds: 3,
      authors: [],
      merge: 'never',
      method: 'squash',
      link: null,
    },
    landing: {
      notAuthor: false,
      style: 'squash',
      verify: plan.hasTests ? ['make check'] : [],
      timeoutMs: 60_000,
      maxBatch: plan.maxBatch,
      onConflict: 'ask',
      onRed: 'ask',
      maxRounds: 2,
      radar: 'show',
      sign: false,
      regenerate: {},
    },
    setup: null,
    idleMs: 1_800_000,
    answerMs: plan.answerMs,
    defaultAnswer: null,
    defaultDecision: null,
    prices: { simulated: { input: 0, cachedInput: 0, output: 0 } },
    placeOf: (model) => ({
      ...{ model, baseUrl: null, provider: 'openai' },
      ...{ missing: 'OPENAI_API_KEY', remedy: 'set it', keysProblem: null, refusal: null },
    }),
    assistantRefusal: () => null,
    bounds: {
      ...{ hosts: true, maxTurns: null, maxTokensTotal: null, maxCostUsd: null },
      ...{ timeoutMs: null, runUsd: null },
    },
    mcpServers: [],
    maxRetries: plan.maxRetries,
    maxModelRetries: plan.maxModelRetries,
    maxTokens: 1_000,
    contextWindow: null,
    defaultModel: 'simulated',
  };
};

const assistants: Assistants = {
  of: () => null,
  problem: () => 'there are none in a simulation',
  loggedIn: () => null,
  checkLogins: async () => {},
  environmentOf: () => ({}),
  sandboxed: () => true,
};

/** Faults that the server may meet and must say; all others are its own. */
const expected: ReadonlySet<string> = new Set([
  'the actor of a task failed; it is restored from its committed state',
  'an actor failed; it is restored from its committed state',
  'could not restore an actor; the server tries again',
  'could not restore a pending task; the server tries again',
  'could not save changes; the server tries again',
  'could not save the last changes',
  'an attempt whose servers died is restored apart from others like it',
  'queue paused: attempts in a row failed with the same provider error',
  'the tracker cannot be used; the server tries again',
  'the tracker can be used again',
  'a task was left started in the tracker; it is open again',
  'a task does not go on after its merge',
  'could not fail the tasks that depend on one that failed',
]);

/** A new process over what the earlier ones left. */
export const startServer = (
  world: World,
  plan: Plan,
  onDeath: (server: Server) => void,
): Server => {
  const life: Life = {
    alive: true,
    crash: () => {
      if (!life.alive) return;
      life.alive = false;
      world.invariants.died();
      world.clock.forgetServer();
      onDeath(server);
    },
  };
  const system = createSystem(settingsFor(plan), {
    tracker: trackerOf(world, life),
    store: storeOf(world, life),
    workspace: workspaceOf(world, life),
    assistants,
    sandbox: sandboxOf(world, life),
    selectModel: () => modelOf(world, life),
    environment: {},
    workflows: { definition: () => 'is none here', reportsFolder: '/nonexistent' },
    results: resultsOf(world, life),
    endOrphans: async () => 0,
    now: world.clock.now,
    onLeaseLost: () => world.invariants.violated('a server that is alone lost its lease'),
    log: (message, facts) => {
      if (!life.alive || expected.has(message)) return;
      world.invariants.violated(
        `the server says: ${message} ${JSON.stringify(facts)} ${facts['error'] ?? ''}`,
      );
    },
  });
  const server: Server = Object.assign(life, { system });
  return server;
};
