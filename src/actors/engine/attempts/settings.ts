import type {
  AgentLimits,
  AssistantName,
  Backend,
  OnQuota,
} from '../../../machines/agent/agent-context.ts';
import type { BudgetLimits } from '../../../machines/agent/budget.ts';
import type { QueueMember } from '../../../machines/merge-queue/merge-queue-context.ts';
import type { SupervisorInput } from '../../../machines/supervisor/supervisor-context.ts';
import type { AttemptInput, Role, RunOptions } from '../../../machines/task.ts';
import type { RoleProfile } from '../../agent/prompt.ts';
import type { OnInterrupted } from '../../agent/tool-calls.ts';
import type { McpServer } from '../../mcp/port.ts';
import { contextWindowOf } from '../../model/context-windows.ts';
import type { Price } from '../../model/price.ts';
import { type NetworkAccess, narrowAccess, publicHosts } from '../../network/access.ts';
import type { MergeMode } from '../../workspace/port.ts';
import type { SetupSettings, SetupTrust } from './setup-worktree.ts';

/** `auto`: our loop if there is a key, else an assistant that is logged in. */
type BackendChoice = 'auto' | 'scripted' | Backend;

/** Null: as for every role. */
export interface RoleSettings extends RoleProfile {
  readonly backend: BackendChoice | null;
  readonly model: string | null;
  readonly maxTurns: number | null;
  readonly maxTokensTotal: number | null;
  readonly maxCostUsd: number | null;
  /** Tools whose calls need approval. */
  readonly approvals: readonly string[];
  /** Commands that must pass before completion. */
  readonly verify: readonly string[];
  /** Null: as `Settings.network`. */
  readonly network: NetworkAccess | null;
  /** The project took the network away. */
  readonly isNetworkRevoked?: boolean;
  readonly concurrency: number | null;
  /** Names of the MCP servers that it may use. */
  readonly mcp: readonly string[];
}

/** How work lands on the branch of the project. */
export interface MergeSettings {
  /** The one who ran a task does not merge it (`policy.merge`). */
  readonly notAuthor: boolean;
  /** Applies when a person names none. */
  readonly style: QueueMember['style'];
  /** Commands that each tree must pass. */
  readonly verify: readonly string[];
  /** Limits each command. */
  readonly timeoutMs: number;
  /** Most tasks that are tested together. */
  readonly maxBatch: number;
  /** Work that is refused: a person decides, or another attempt goes on with it. */
  readonly onConflict: 'ask' | 'resolve';
  readonly onRed: 'ask' | 'send_back';
  readonly maxRounds: number;
  /** The user's git signs the commits that land. */
  readonly sign: boolean;
  /** Commands that make a file anew where both sides changed it, by its path below the project. */
  readonly regenerate: Readonly<Record<string, string>>;
  /** Conflicts to come: shown to people, also told to the agents, or not looked for. */
  readonly radar: 'off' | 'show' | 'tell';
}

/** Values from the configuration; replaced as a whole while the server runs. */
export interface AskedPlace {
  /** As its provider calls it. */
  readonly model: string;
  /** Null: anywhere. */
  readonly baseUrl: string | null;
  readonly provider: string;
  /** The variable of its key, or its address, when its provider cannot be asked without that. */
  readonly missing: string;
  /** The remedy for that. */
  readonly remedy: string;
  /** Why keys that are kept do not count; null: they do. */
  readonly keysProblem: string | null;
  /** Why nobody asks it: a policy, or a provider that is not there; null: it may be asked. */
  readonly refusal: string | null;
}

/** One of `tracker.sources`. */
export interface SourceSettings {
  /** `owner/name`; null: that of the project's forge. */
  readonly repository: string | null;
  readonly labels: readonly string[];
  readonly writeBack: 'comment' | 'none';
}

/** `forge` of the configuration. */
export interface PublishSettings {
  readonly publish: 'never' | 'when_complete';
  readonly draft: boolean;
  /** Shortest and longest pause between two looks. */
  readonly pauseMs: readonly [number, number];
  /** A head without checks has none after so long. */
  readonly checksWaitMs: number;
  readonly onChecks: 'fix' | 'ask' | 'ignore';
  readonly onComments: 'fix' | 'ask';
  /** Attempts that checks and comments may ask for. */
  readonly maxRounds: number;
  /** Logins whose comments count, beside those who may push. */
  readonly authors: readonly string[];
  readonly merge: 'never' | 'when_green' | 'queue';
  readonly method: 'squash' | 'merge';
  /** The page of a task, with `{task_id}` in it; null: there is none that others can open. */
  readonly link: string | null;
}

/** Rules of a policy; null where it has none. */
export interface Bounds {
  readonly hosts: NetworkAccess;
  readonly maxTurns: number | null;
  readonly maxTokensTotal: number | null;
  readonly maxCostUsd: number | null;
  readonly timeoutMs: number | null;
  readonly runUsd: number | null;
}

export interface Settings {
  readonly projectRoot: string;
  /** The lease of a server; read at its start. */
  readonly leaseMs: number;
  /** Most agents of this server at once. */
  readonly cap: number;
  /** Most agents of all servers of its store. */
  readonly sharedCap: number;
  /** The roles that this server runs; null: all. Others are for the other servers of its store. */
  readonly ownRoles: readonly Role[] | null;
  readonly roles: Readonly<Record<Role, RoleSettings>>;
  readonly backend: BackendChoice;
  /** For a tool call that ran when a server ended. */
  readonly onInterrupted: OnInterrupted;
  /** For tasks whose dependency failed. */
  readonly onDependencyFailure: 'wait' | 'fail';
  /** At a limit of the provider. */
  readonly onQuota: OnQuota;
  /** Comment in the tracker at the end of an attempt. */
  readonly notes: boolean;
  /** Of commands whose role says nothing. */
  readonly network: NetworkAccess;
  /** Callers may enable the network. */
  readonly allowTaskNetwork: boolean;
  readonly queueLimit: number;
  readonly maxTurns: number;
  readonly maxTokensTotal: number | null;
  readonly maxCostUsd: number | null;
  readonly budgets: BudgetLimits;
  readonly merge: MergeMode;
  readonly landing: MergeSettings;
  readonly publishing: PublishSettings;
  readonly sources: readonly SourceSettings[];
  /** Null: new worktrees need none. */
  readonly setup: SetupSettings | null;
  /** Longest silence of an assistant (ms). */
  readonly idleMs: number;
  /** Longest wait for an answer (ms); 0: no limit. */
  readonly answerMs: number;
  /** The answer after `answerMs`; null: the attempt fails. */
  readonly defaultAnswer: string | null;
  readonly defaultDecision: 'deny' | null;
  readonly maxRetries: number;
  /** Retries of a failed model call within an attempt. */
  readonly maxModelRetries: number;
  /** Tokens of one answer of the model. */
  readonly maxTokens: number;
  /** Context size in tokens; null: as known for each model. */
  readonly contextWindow: number | null;
  readonly defaultModel: string;
  /** By the user, before those of the price table. */
  readonly prices: Readonly<Record<string, Price>>;
  /** Where a model of our own loop answers. */
  readonly placeOf: (model: string) => AskedPlace;
  /** Why a policy leaves out an assistant with a model, null for its own choice; null: it may work. */
  readonly assistantRefusal: (name: AssistantName, model: string | null) => string | null;
  /** Limits that hold for roles and runs, too. */
  readonly bounds: Bounds;
  /** The user's servers of the Model Context Protocol. */
  readonly mcpServers: readonly McpServer[];
}

type NetworkSettings = Pick<
  Settings,
  'roles' | 'network' | 'allowTaskNetwork' | 'setup' | 'bounds'
>;

const maxRepeats = 6;
const maxNudges = 2;
const maxStrikes = 3;

export const modelNameFor = (
  { roles, defaultModel }: Settings,
  run: RunOptions,
  role: Role,
): string => run.model ?? roles[role].model ?? defaultModel;

/** `slots`: how many of the agents of all servers this one may run. */
export const capsOf = (
  { cap, queueLimit, roles, ownRoles }: Settings,
  slots = cap,
): SupervisorInput => ({
  cap: slots,
  queueLimit,
  roleCaps: Object.fromEntries(
    Object.values(roles).flatMap(({ role, concurrency }) => {
      if (ownRoles?.includes(role) === false) return [[role, 0]];
      return concurrency === null ? [] : [[role, concurrency]];
    }),
  ),
});

/** Who uses the network in an attempt. */
export type NetworkUser =
  | { readonly kind: 'commands' }
  | { readonly kind: 'assistant' }
  | { readonly kind: 'setup'; readonly trust: SetupTrust }
  | { readonly kind: 'server'; readonly name: string; readonly network: NetworkAccess };

/** Narrower than `network: true`, and never narrower than its own list. */
const assistantAccess = (
  role: Pick<RoleSettings, 'network' | 'isNetworkRevoked'>,
  all: NetworkAccess,
): NetworkAccess => {
  const chosen = role.network === null || role.network === false ? all : role.network;
  const isOpen = chosen === true && role.network !== false && role.isNetworkRevoked !== true;
  return isOpen || typeof chosen === 'object' ? chosen : publicHosts;
};

const setupAccess = (network: NetworkAccess, trust: SetupTrust): NetworkAccess =>
  trust === 'users' || (trust === 'candidate' && typeof network === 'object') ? network : false;

/**
 * The network of everything that an attempt starts, decided here alone: the most specific setting
 * counts. The caller of a run may close it for commands, and open it where the configuration allows
 * that. An assistant calls its provider, so `false` leaves it the public hosts.
 */
export const networkAccess = (
  settings: NetworkSettings,
  attempt: Pick<AttemptInput, 'role' | 'options'>,
  user: NetworkUser,
): NetworkAccess => narrowAccess(chosenAccess(settings, attempt, user), settings.bounds.hosts);

const chosenAccess = (
  { roles, network: all, allowTaskNetwork, setup }: NetworkSettings,
  { role: name, options: run }: Pick<AttemptInput, 'role' | 'options'>,
  user: NetworkUser,
): NetworkAccess => {
  const role = roles[name];
  switch (user.kind) {
    case 'server':
      return user.network;
    case 'setup':
      return setupAccess(setup?.network ?? false, user.trust);
    case 'assistant':
      return assistantAccess(role, all);
    case 'commands':
      if (run.network === false || (run.network === true && allowTaskNetwork)) return run.network;
      return role.isNetworkRevoked !== true && (role.network ?? all);
  }
};

/** Null: no limit. */
export const lower = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other);

export const wallLimitMs = ({ roles, bounds }: Settings, run: RunOptions, role: Role): number => {
  const chosen = run.timeoutMs ?? roles[role].timeoutMs;
  return lower(chosen, bounds.timeoutMs) ?? chosen;
};

export const mcpServersFor = ({ mcpServers, roles }: Settings, role: Role): readonly McpServer[] =>
  mcpServers.filter(({ name }) => roles[role].mcp.includes(name));

/** Limits of an attempt: of the caller, else of the role, else of all roles. */
export const limitsFor = (
  settings: Settings,
  run: RunOptions,
  role: Role,
  now: number,
): AgentLimits => {
  const own = settings.roles[role];
  const { bounds } = settings;
  const maxTurns = run.maxTurns ?? own.maxTurns ?? settings.maxTurns;
  const maxTokens = run.maxTokensTotal ?? own.maxTokensTotal ?? settings.maxTokensTotal;
  return {
    maxTurns: lower(maxTurns, bounds.maxTurns) ?? maxTurns,
    maxTokensTotal: lower(maxTokens, bounds.maxTokensTotal),
    maxCostUsd: lower(run.maxCostUsd ?? own.maxCostUsd ?? settings.maxCostUsd, bounds.maxCostUsd),
    wallMs: wallLimitMs(settings, run, role),
    deadlineAt: now + wallLimitMs(settings, run, role),
    answerMs: settings.answerMs,
    defaultAnswer: settings.defaultAnswer,
    defaultDecision: settings.defaultDecision,
    maxRepeats,
    maxNudges,
    maxModelRetries: settings.maxModelRetries,
    maxStrikes,
    contextWindow: settings.contextWindow ?? contextWindowOf(modelNameFor(settings, run, role)),
    approvals: own.approvals,
    onQuota: settings.onQuota,
  };
};
