import type { AgentLimits, Backend } from '../../machines/agent-context.ts';
import type { SupervisorInput } from '../../machines/supervisor-context.ts';
import type { Role, RunOptions } from '../../machines/task.ts';
import type { RoleProfile } from '../agent/roles.ts';
import { contextWindowOf } from '../model/context-windows.ts';
import type { ModelUsage } from '../model/port.ts';
import type { MergeMode } from '../workspace/port.ts';

/** USD for a million tokens of a model. */
export interface Price {
  readonly input: number;
  readonly cachedInput: number;
  readonly output: number;
}

/** Who does the work: as `auto`, our loop where there is a key for it, else an assistant that is logged in. */
export type BackendChoice = 'auto' | 'scripted' | Backend;

/** A role as it is configured; null means: as for every role. */
export interface RoleSettings extends RoleProfile {
  readonly backend: BackendChoice | null;
  readonly model: string | null;
  readonly maxTurns: number | null;
  readonly maxTokensTotal: number | null;
  readonly maxCostUsd: number | null;
  /** Tools whose calls a person must allow first. */
  readonly approvals: readonly string[];
  /** Commands that must pass before a task of the role may complete. */
  readonly verify: readonly string[];
  /** Whether its commands may reach the network. */
  readonly network: boolean;
  /** How many agents of the role may run at once. */
  readonly concurrency: number | null;
}

/** `ask` a person, `repeat` the call, or `fail` the attempt. */
export type OnInterrupted = 'ask' | 'repeat' | 'fail';

/** Plain values that the configuration decides; all of them can be replaced while the server runs. */
export interface Settings {
  readonly projectRoot: string;
  /** How many agents run at once. */
  readonly cap: number;
  readonly roles: Readonly<Record<Role, RoleSettings>>;
  readonly backend: BackendChoice;
  /** What happens to a tool call that was at work when a server ended. */
  readonly onInterrupted: OnInterrupted;
  /** What becomes of tasks that depend on one that failed: they wait, or fail too. */
  readonly onDependencyFailure: 'wait' | 'fail';
  /** Whether the end of an attempt is told as a comment in the tracker. */
  readonly notes: boolean;
  /** Whether the caller of a run may open the network for its commands. */
  readonly allowTaskNetwork: boolean;
  readonly queueLimit: number;
  readonly maxTurns: number;
  readonly maxTokensTotal: number | null;
  readonly maxCostUsd: number | null;
  /** What becomes of finished work. */
  readonly merge: MergeMode;
  /** How long nothing may be heard of an attempt that is at work (ms). */
  readonly idleMs: number;
  /** How long a question to a person may stay unanswered (ms); 0: without limit. */
  readonly answerMs: number;
  /** What counts as the answer when nobody gives one in time; null: the attempt fails. */
  readonly defaultAnswer: string | null;
  readonly defaultDecision: 'deny' | null;
  readonly maxRetries: number;
  /** How often a call of the model that failed in a way that may pass is made again within an attempt. */
  readonly maxModelRetries: number;
  /** Tokens of one answer. */
  readonly maxTokens: number;
  /** Tokens that the models read at once; null for what is known of each. */
  readonly contextWindow: number | null;
  readonly defaultModel: string;
  readonly prices: Readonly<Record<string, Price>>;
  /** The variable that would hold the provider's key. */
  readonly credentialVariable: string;
}

const maxRepeats = 6;
const maxNudges = 2;
const maxStrikes = 3;
const million = 1_000_000;

export const modelNameFor = ({ roles, defaultModel }: Settings, run: RunOptions, role: Role): string =>
  run.model ?? roles[role].model ?? defaultModel;

/** What bounds the slots and the queue for them. */
export const capsOf = ({ cap, queueLimit, roles }: Settings): SupervisorInput => ({
  cap,
  queueLimit,
  roleCaps: Object.fromEntries(
    Object.values(roles).flatMap(({ role, concurrency }) => (concurrency === null ? [] : [[role, concurrency]])),
  ),
});

/** Whether commands of a run reach the network: the caller may close it, and open it where that is allowed. */
export const networkFor = ({ roles, allowTaskNetwork }: Settings, { network }: RunOptions, role: Role): boolean =>
  network === undefined || (network && !allowTaskNetwork) ? roles[role].network : network;

/** The wall limit of an attempt (ms). */
export const wallLimitMs = ({ roles }: Settings, run: RunOptions, role: Role): number =>
  run.timeoutMs ?? roles[role].timeoutMs;

/** What bounds an attempt: the caller's word, else the role's, else that of every role. */
export const limitsFor = (settings: Settings, run: RunOptions, role: Role, now: number): AgentLimits => {
  const own = settings.roles[role];
  return {
    maxTurns: run.maxTurns ?? own.maxTurns ?? settings.maxTurns,
    maxTokensTotal: run.maxTokensTotal ?? own.maxTokensTotal ?? settings.maxTokensTotal,
    maxCostUsd: run.maxCostUsd ?? own.maxCostUsd ?? settings.maxCostUsd,
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
  };
};

/** What a call cost, in USD; null where the price of the model is not configured. */
export const costOf = (price: Price | undefined, usage: ModelUsage): number | null => {
  if (price === undefined) return null;
  const { inputTokens, outputTokens, cachedTokens } = usage;
  const cached = Math.min(cachedTokens, inputTokens);
  const total = (inputTokens - cached) * price.input + cached * price.cachedInput + outputTokens * price.output;
  return total / million;
};
