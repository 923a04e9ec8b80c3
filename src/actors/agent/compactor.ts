import type { Compacted, Spent } from '../../machines/agent-context.ts';
import type { CompactInput } from '../../machines/agent-selectors.ts';
import type { Failure } from '../../machines/task.ts';
import { costOf } from '../engine/settings.ts';
import type { ModelUsage } from '../model/port.ts';
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
import type { KeptCompaction } from './steps.ts';

/** `usage` is null where the model was not asked, or did not answer. */
type CompactionOutcome =
  | KeptCompaction
  | { readonly failure: Failure; readonly called: boolean; readonly usage: ModelUsage | null };

const noModelUsage: ModelUsage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

const overflow = (message: string): Failure => ({
  code: 'model_failed',
  message,
  facts: { kind: 'context_overflow' },
  retryable: false,
});
const nothingToLeaveOut = overflow("the task is longer than the model's context, and there is nothing to leave out");
const notShorter = overflow('the conversation did not become shorter by a summary of its older part');
const noSummary: Failure = {
  code: 'model_failed',
  message: 'the model gave no summary of the conversation, which is too long for it',
  facts: { kind: 'no_summary' },
  retryable: true,
};

/** Makes the conversation of an attempt shorter before a turn, as a step: what was decided once holds after a crash. */
export const createCompactor = (call: ModelCall, ports: Pick<ModelCallPorts, 'chooseModel' | 'emit'>) => {
  const summarise = async (desk: Session, input: CompactInput, { older }: CompactionPlan, signal: AbortSignal) => {
    const { turn, contextWindow: _, ...seat } = input;
    const messages = [...older, summaryRequest];
    return call(desk, seat, { turn, step: `compact:${turn}`, messages, purpose: 'compaction' }, signal);
  };

  const take = async (desk: Session, input: CompactInput, signal: AbortSignal): Promise<CompactionOutcome> => {
    const { messages } = desk.conversation;
    const plan = planCompaction(messages, input.contextWindow);
    if (plan === null) return { failure: nothingToLeaveOut, called: false, usage: null };
    const heard = desk.steps.thought(input.turn) !== null;
    desk.steps.compact(input.turn, heard);
    const called = plan.older.length > 0;
    const asked = called ? await summarise(desk, input, plan, signal) : null;
    if (asked?.type === 'failed') return { failure: asked.failure, called, usage: null };
    const usage = asked?.usage ?? null;
    const summary = asked === null ? null : boundedSummary(asked.truncated ? '' : asked.text);
    if (summary === '') return { failure: noSummary, called, usage };
    const compaction: Compaction = { summary, from: plan.from, resultBytes: plan.resultBytes };
    if (!isShorter(messages, compaction)) return { failure: notShorter, called, usage };
    const kept = { compaction, usage };
    desk.steps.compacted(input.turn, heard, kept);
    return kept;
  };

  return async (desk: Session, input: CompactInput, signal: AbortSignal): Promise<Compacted> => {
    const taken = desk.steps.compaction(input.turn)?.kept ?? (await take(desk, input, signal));
    const { usage } = taken;
    const called = 'failure' in taken ? taken.called : usage !== null;
    const { price } = ports.chooseModel(input);
    const spent: Spent = {
      modelCalls: called ? 1 : 0,
      toolCalls: 0,
      ...(usage ?? noModelUsage),
      costUsd: usage === null ? null : costOf(price, usage),
    };
    if ('failure' in taken) return { kind: 'failed', failure: taken.failure, spent };
    const before = desk.conversation.messages.length;
    desk.conversation.compact(taken.compaction);
    const after = desk.conversation.messages.length;
    const message = `the conversation grew too long: its older part was replaced by a summary (${before} messages before, ${after} now)`;
    ports.emit(input, 'log', { level: 'info', message });
    return { kind: 'compacted', spent };
  };
};
