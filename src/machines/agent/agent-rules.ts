import { jitter } from '../jitter.ts';
import type { Failure, Usage } from '../task.ts';
import type {
  AgentContext,
  AgentLimits,
  Response,
  Resume,
  ShownCall,
  Spent,
  Thought,
} from './agent-context.ts';

/** Share of the context window that a conversation may fill before it is compacted. */
const fullShare = 0.8;

/** A provider that asks for a longer pause ends the attempt. */
export const longestModelPauseMs = 5 * 60_000;

/**
 * The pause that the provider asked for, else 1, 2, 4 … 60 s, plus up to a quarter, so that
 * attempts do not retry together.
 */
export const pauseAfterFailure = (
  { facts }: Failure,
  { taskId, attempt, modelTries }: AgentContext,
): number => {
  const wanted = facts['retry_after_ms'];
  const pause = typeof wanted === 'number' ? wanted : Math.min(1_000 * 2 ** modelTries, 60_000);
  return Math.round(pause * (1 + jitter(`${taskId}#${attempt}/${modelTries}`) / 4));
};

export const withSpent = (usage: Usage, spent: Spent, turns = spent.modelCalls): Usage => ({
  input_tokens: usage.input_tokens + spent.inputTokens,
  output_tokens: usage.output_tokens + spent.outputTokens,
  cached_tokens: usage.cached_tokens + spent.cachedTokens,
  cache_write_tokens: (usage.cache_write_tokens ?? 0) + (spent.cacheWriteTokens ?? 0) || undefined,
  model_calls: usage.model_calls + spent.modelCalls,
  tool_calls: usage.tool_calls + spent.toolCalls,
  turns: usage.turns + turns,
  ...(usage.tokens_unknown === true || spent.tokensUnknown === true
    ? { tokens_unknown: true as const }
    : {}),
  ...(usage.cost_usd === undefined && spent.costUsd === null
    ? {}
    : { cost_usd: (usage.cost_usd ?? 0) + (spent.costUsd ?? 0) }),
});

export const sumOfUsage = (usage: Usage, more: Usage): Usage => {
  const spent = {
    modelCalls: more.model_calls,
    toolCalls: more.tool_calls,
    inputTokens: more.input_tokens,
    outputTokens: more.output_tokens,
    cachedTokens: more.cached_tokens,
    cacheWriteTokens: more.cache_write_tokens,
    tokensUnknown: more.tokens_unknown,
    costUsd: more.cost_usd ?? null,
  };
  return withSpent(usage, spent, more.turns);
};

/** How long the attempt had waited for persons at a time (ms); the wait for its slot after it counts. */
export const waitedUntil = (
  { waitedMs = 0, askedAt }: Pick<AgentContext, 'waitedMs' | 'askedAt'>,
  at: number,
): number => waitedMs + Math.max(0, at - (askedAt ?? at));

/** Counts the running turn of an assistant. */
export const isOverTurns = ({ usage, limits }: AgentContext, spent: Spent): boolean =>
  withSpent(usage, spent).turns > limits.maxTurns;

export const isOverTokens = (
  { usage, limits: { maxTokensTotal } }: AgentContext,
  spent: Spent,
): boolean => {
  const { input_tokens, output_tokens } = withSpent(usage, spent);
  return maxTokensTotal !== null && input_tokens + output_tokens >= maxTokensTotal;
};

/**
 * Some assistants report the cost only at the end, so an unknown cost does not exceed the limit
 * here.
 */
export const isOverMoney = (
  { usage, limits: { maxCostUsd } }: AgentContext,
  spent: Spent,
): boolean => maxCostUsd !== null && (withSpent(usage, spent).cost_usd ?? 0) >= maxCostUsd;

/** By the count of the last answer, or because the provider refused the conversation. */
export const isTooLong = ({
  conversationTokens,
  overflowed,
  limits: { contextWindow },
}: AgentContext): boolean =>
  overflowed || (contextWindow !== null && conversationTokens >= contextWindow * fullShare);

export const saysTooLong = (failure: Failure | null): boolean =>
  failure?.facts['kind'] === 'context_overflow';

export const isLate = ({ deadlineAt }: AgentContext, at: number): boolean =>
  deadlineAt !== null && at >= deadlineAt;

export const isPauseOver = (context: AgentContext, at: number): boolean =>
  isLate(context, at) && at < (context.limitAt ?? 0);

/** `mcp__github` names every tool of that server, any other name one tool. */
const isNamedBy = (tool: string, name: string): boolean =>
  tool === name || (name.startsWith('mcp__') && tool.startsWith(`${name}__`));

export const needsApproval = (
  { tool, change }: ShownCall,
  { approvals }: Pick<AgentLimits, 'approvals'>,
): boolean => change !== undefined || approvals.some((name) => isNamedBy(tool, name));

export const approvalQuestion = ({ calls }: Pick<AgentContext, 'calls'>): string => {
  const changes = new Set(calls.flatMap(({ change }) => change?.why ?? []));
  return ['The agent wants to make these calls. May it?', ...changes].join('\n\n');
};

export const asks = [
  'awaitingInput',
  'awaitingApproval',
  'awaitingDecision',
] as const satisfies readonly Resume['at'][];

export const fallbackOf = ({ question }: AgentContext): string | null => question?.fallback ?? null;

export const answers = ({ question }: AgentContext, response: Response): boolean =>
  question?.inputId === response.inputId &&
  (question.kind === 'approval' ? response.decision !== null : response.text !== null);

export const countedUsage = (usage: Usage, thought: Thought): Usage => {
  if (thought.kind !== 'failed')
    return withSpent(usage, { ...thought, modelCalls: 1, toolCalls: 0 });
  return thought.spent === undefined
    ? { ...usage, model_calls: usage.model_calls + 1 }
    : withSpent(usage, thought.spent, 0);
};
