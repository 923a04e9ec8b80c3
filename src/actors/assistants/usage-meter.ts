import type { Spent } from '../../machines/agent/agent-context.ts';
import type { Usage } from '../../machines/task.ts';
import { type AssistantEvent, noTokens, type TokensUsed } from './port.ts';

export interface UsageMeter {
  add(event: AssistantEvent): void;
  isDue(): boolean;
  take(): Spent;
}

export interface UsageMeterOptions {
  readonly before: Usage;
  /** Used when the assistant reports no cost; null when the price is unknown. */
  readonly costOf: (used: TokensUsed) => number | null;
}

const combineTokens = (
  one: TokensUsed,
  other: TokensUsed,
  join: (a: number, b: number) => number,
): TokensUsed => ({
  inputTokens: join(one.inputTokens, other.inputTokens),
  outputTokens: join(one.outputTokens, other.outputTokens),
  cachedTokens: join(one.cachedTokens, other.cachedTokens),
  cacheWriteTokens: join(one.cacheWriteTokens ?? 0, other.cacheWriteTokens ?? 0),
});
const sum = (a: number, b: number): number => a + b;
/** Never negative: usage that was counted stays counted. */
const less = (a: number, b: number): number => Math.max(0, a - b);

/**
 * Counts the model calls that the assistant names; else all events between two batches of tool
 * results are one call.
 */
const createCallCount = () => {
  const named = new Map<string, TokensUsed>();
  const running = new Set<string>();
  let unnamed = 0;
  let isNew = true;

  const countUnnamed = (): void => {
    if (isNew) unnamed += 1;
    isNew = false;
  };
  return {
    add: (event: AssistantEvent): void => {
      if (event.type === 'called') named.set(event.id, event.used);
      if (event.type === 'text' || event.type === 'tool_started') countUnnamed();
      if (event.type === 'tool_started') running.add(event.callId);
      if (event.type === 'tool_ended' && running.delete(event.callId)) isNew = running.size === 0;
    },
    count: (): number => (named.size > 0 ? named.size : unnamed),
    used: (): TokensUsed =>
      [...named.values()].reduce((all, used) => combineTokens(all, used, sum), noTokens),
  };
};

export const createUsageMeter = ({ before, costOf }: UsageMeterOptions): UsageMeter => {
  const calls = createCallCount();
  const counted: TokensUsed = {
    inputTokens: before.input_tokens,
    outputTokens: before.output_tokens,
    cachedTokens: before.cached_tokens,
    cacheWriteTokens: before.cache_write_tokens,
  };
  let said: TokensUsed = noTokens;
  let newUsd: number | null = null;
  let soFar: Extract<AssistantEvent, { type: 'cost_so_far' }> | null = null;
  let tools = 0;
  let taken: Spent = { modelCalls: 0, toolCalls: 0, ...noTokens, costUsd: null };

  /** A cost of the session covers the usage before this run, too; a cost of the run does not. */
  const usdOfRun = ({ usd, inputTokens }: NonNullable<typeof soFar>, used: TokensUsed): number => {
    const earlier = before.cost_usd ?? 0;
    const isOfSession =
      inputTokens === null ? usd >= earlier : inputTokens >= counted.inputTokens + used.inputTokens;
    return isOfSession ? less(usd, earlier) : usd;
  };
  const now = (): Spent => {
    const used = combineTokens(said, calls.used(), Math.max);
    const saidUsd = newUsd ?? (soFar === null ? null : usdOfRun(soFar, used));
    return {
      modelCalls: calls.count(),
      toolCalls: tools,
      ...used,
      costUsd: saidUsd ?? costOf(used),
    };
  };

  return {
    add: (event) => {
      calls.add(event);
      if (event.type === 'tool_started') tools += 1;
      if (event.type === 'used') {
        const used = event.since === 'run' ? event.used : combineTokens(event.used, counted, less);
        said = combineTokens(said, used, Math.max);
      }
      if (event.type === 'cost') newUsd = (newUsd ?? 0) + event.usd;
      if (event.type === 'cost_so_far') soFar = event;
    },
    isDue: () => {
      const { modelCalls, inputTokens, outputTokens } = now();
      return (
        modelCalls > taken.modelCalls ||
        inputTokens > taken.inputTokens ||
        outputTokens > taken.outputTokens
      );
    },
    take: () => {
      const all = now();
      const spent: Spent = {
        ...combineTokens(all, taken, less),
        modelCalls: all.modelCalls - taken.modelCalls,
        toolCalls: all.toolCalls - taken.toolCalls,
        costUsd: all.costUsd === null ? null : less(all.costUsd, taken.costUsd ?? 0),
      };
      taken = {
        ...all,
        ...combineTokens(all, taken, Math.max),
        costUsd: all.costUsd ?? taken.costUsd,
      };
      return spent;
    },
  };
};
