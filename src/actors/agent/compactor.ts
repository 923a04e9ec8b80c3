import type { Compacted, Spent } from '../../machines/agent-context.ts';
import type { CompactInput } from '../../machines/agent-selectors.ts';
import { nothingSpent } from '../../machines/budget.ts';
import type { Failure } from '../../machines/task.ts';
import type { ModelUsage } from '../model/port.ts';
import { costOf } from '../model/price.ts';
import {
  boundedSummary,
  type Compaction,
  type CompactionPlan,
  isShorter,
  planCompaction,
  summaryRequest,
} from './compaction.ts';
import type { ModelCall, ModelCallPorts } from './model-call.ts';
import type { Session } from './session.ts';
import type { KeptCompaction } from './turn-steps.ts';

/** `usage` is null when the model was not called. */
type CompactionOutcome = KeptCompaction | { readonly failure: Failure; readonly spent: Spent };

const overflow = (message: string): Failure => ({
  code: 'model_failed',
  message,
  facts: { kind: 'context_overflow' },
  retryable: false,
});
const nothingToLeaveOut = overflow("the task alone is longer than the model's context");
const notShorter = overflow('a summary of its older part did not make the conversation shorter');
const noSummary: Failure = {
  code: 'model_failed',
  message: 'the model gave no summary of the conversation, which is too long for it',
  facts: { kind: 'no_summary' },
  retryable: true,
};

/**
 * Compacts the conversation before a turn. The compaction is a step: the same one applies after a
 * crash.
 */
export const createCompactor = (
  call: ModelCall,
  ports: Pick<ModelCallPorts, 'priceFor' | 'emit'>,
) => {
  const summarise = async (
    session: Session,
    input: CompactInput,
    { older }: CompactionPlan,
    signal: AbortSignal,
  ) => {
    const { turn } = input;
    const messages = [...older, summaryRequest];
    return call(
      session,
      input,
      { turn, step: `compact:${turn}`, messages, purpose: 'compaction' },
      signal,
    );
  };

  const spentOn = (input: CompactInput, usage: ModelUsage | null): Spent =>
    usage === null
      ? nothingSpent
      : { ...nothingSpent, ...usage, modelCalls: 1, costUsd: costOf(ports.priceFor(input), usage) };

  const decide = async (
    session: Session,
    input: CompactInput,
    signal: AbortSignal,
  ): Promise<CompactionOutcome> => {
    const { messages } = session.conversation;
    const plan = planCompaction(messages, input.contextWindow);
    if (plan === null) return { failure: nothingToLeaveOut, spent: nothingSpent };
    const heard = session.steps.thought(input.turn) !== null;
    await session.steps.recordCompaction(input.turn, heard);
    const asked = plan.older.length > 0 ? await summarise(session, input, plan, signal) : null;
    if (asked?.type === 'failed') return { failure: asked.failure, spent: asked.spent };
    const usage = asked?.usage ?? null;
    const spent = spentOn(input, usage);
    const summary = asked === null ? null : boundedSummary(asked.truncated ? '' : asked.text);
    if (summary === '') return { failure: noSummary, spent };
    const compaction: Compaction = { summary, from: plan.from, resultBytes: plan.resultBytes };
    if (!isShorter(messages, compaction)) return { failure: notShorter, spent };
    const kept = { compaction, usage };
    await session.steps.recordCompacted(input.turn, heard, kept);
    return kept;
  };

  return async (session: Session, input: CompactInput, signal: AbortSignal): Promise<Compacted> => {
    const outcome =
      session.steps.compaction(input.turn)?.kept ?? (await decide(session, input, signal));
    if ('failure' in outcome) return { kind: 'failed', ...outcome };
    const spent = spentOn(input, outcome.usage);
    const before = session.conversation.messages.length;
    session.conversation.compact(outcome.compaction);
    const after = session.conversation.messages.length;
    const message = `the conversation grew too long: its older part was replaced by a summary (${before} messages before, ${after} now)`;
    ports.emit(input, 'log', { level: 'info', message });
    return { kind: 'compacted', spent };
  };
};
