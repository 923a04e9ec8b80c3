import type {
  Acted,
  Compacted,
  Prepared,
  ShownCall,
  Spent,
  Thought,
} from '../../machines/agent/agent-context.ts';
import type {
  ActInput,
  CompactInput,
  PrepareInput,
  ThinkInput,
} from '../../machines/agent/agent-selectors.ts';
import { nothingSpent } from '../../machines/agent/budget.ts';
import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  type Failure,
  type Role,
  type TaskId,
} from '../../machines/task.ts';
import type { ModelUsage, ToolCall } from '../model/port.ts';
import { costOf } from '../model/price.ts';
import type { OpenAttemptMcp } from './attempt-mcp.ts';
import {
  boundedSummary,
  type Compaction,
  type CompactionPlan,
  isShorter,
  planCompaction,
  summaryRequest,
} from './compaction.ts';
import { createKeepWork } from './keep-work.ts';
import {
  type CallOutcome,
  countCutCall,
  createModelCall,
  type ModelCall,
  type ModelCallPorts,
} from './model-call.ts';
import { type AttemptPorts, openAttempt } from './open-attempt.ts';
import type { RoleProfile } from './prompt.ts';
import { createSession, type Session, unclearCalls } from './session.ts';
import {
  createToolCalls,
  folderTexts,
  interruptedFailure,
  maxShownLength,
  type OnInterrupted,
  questionAbout,
  type ToolCallPorts,
} from './tool-calls.ts';

import type { BegunCall, KeptCompaction, ModelAnswer } from './turn-steps.ts';

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
const createCompactor = (call: ModelCall, ports: Pick<ModelCallPorts, 'priceFor' | 'emit'>) => {
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

const nudgeTexts = {
  silent:
    'You answered without calling a tool. Go on with the task, or call finish when you are done.',
  cut: 'Your answer was cut at its limit of length, so none of its calls was made. Go on in smaller steps: think shorter, and make long files in several pieces.',
} as const;
const answerTexts = {
  person: (text: string) => `A person answers:\n\n${text}`,
  nobody: (text: string) => `Nobody answered in time. This counts as the answer:\n\n${text}`,
  check: (text: string) =>
    `Your work is not accepted yet. ${text}\n\nFix it, then call finish again.`,
} as const;

const shownCall = ({ mcp }: Session, { id, tool, arguments: text }: ToolCall): ShownCall => {
  const change = mcp.changeOf(tool);
  return {
    call_id: id,
    tool,
    arguments: text.slice(0, maxShownLength),
    change: change ?? undefined,
  };
};

const thoughtKind = ({ truncated, calls }: ModelAnswer) => {
  if (truncated) return 'truncated' as const;
  return calls.length > 0 ? ('calls' as const) : ('answer' as const);
};

const toldText = (text: string): string =>
  `A person says, while you work:\n\n${text}\n\nTake it into account, and go on; call finish when you are done.`;

const messagesBefore = ({ nudge, answer, told }: ThinkInput): readonly string[] => [
  ...(nudge === null ? [] : [nudgeTexts[nudge]]),
  ...(answer?.text == null ? [] : [answerTexts[answer.from](answer.text)]),
  ...told.map(toldText),
];

/** Takes one turn. An answer in the journal is used; the model is not asked again. */
const createThink = (callModel: ModelCall, { priceFor }: Pick<ModelCallPorts, 'priceFor'>) => {
  const callAsStep = async (
    session: Session,
    input: ThinkInput,
    said: readonly string[],
    signal: AbortSignal,
  ): Promise<CallOutcome> => {
    const { turn, maxTurns } = input;
    const { steps, conversation } = session;
    await steps.recordRequest(turn, said);
    // A compacted conversation is another request: the provider must not answer it as the first.
    const step = `think:${turn}${steps.compaction(turn) === null ? '' : ':compacted'}`;
    const request = { turn, maxTurns, step, messages: conversation.messages };
    const outcome = await callModel(session, input, request, signal);
    if (outcome.type === 'answered') await steps.recordAnswer(turn, said, outcome);
    return outcome;
  };

  return async (session: Session, input: ThinkInput, signal: AbortSignal): Promise<Thought> => {
    const { steps, conversation } = session;
    const said = steps.thought(input.turn)?.said ?? [
      ...session.takeNotes(),
      ...messagesBefore(input),
    ];
    conversation.addMessages(input.turn, said);
    const known = steps.thought(input.turn)?.answer ?? null;
    const outcome = known ?? (await callAsStep(session, input, said, signal));
    if (outcome.type === 'failed')
      return { kind: 'failed', failure: outcome.failure, spent: outcome.spent };
    conversation.addAnswer(outcome);
    const calls = conversation.pendingCalls().map((call) => shownCall(session, call));
    const costUsd = costOf(priceFor(input), outcome.usage);
    return { kind: thoughtKind(outcome), calls, ...outcome.usage, costUsd };
  };
};

interface TurnPorts {
  readonly attempt: AttemptPorts;
  readonly model: ModelCallPorts;
  readonly tools: ToolCallPorts;
  readonly openMcp: OpenAttemptMcp;
  readonly profileOf: (role: Role) => RoleProfile;
  /** Ends processes of the attempt that survived an earlier server. */
  readonly endLeftovers: (taskId: TaskId, attempt: number) => Promise<void>;
}

/** The slots of the agent machine, for attempts that our own loop works on. */
export interface AgentTurns {
  prepare(input: PrepareInput, signal: AbortSignal): Promise<Prepared>;
  think(input: ThinkInput, signal: AbortSignal): Promise<Thought>;
  compact(input: CompactInput, signal: AbortSignal): Promise<Compacted>;
  act(input: ActInput, signal: AbortSignal): Promise<Acted>;
  /** Says something before the next turn that is new. */
  note(key: AttemptKey, text: string): void;
  /** Resolves when nothing that the attempt started runs any more. */
  forget(key: AttemptKey): Promise<void>;
  /** As `forget`, of every attempt. */
  forgetAll(): Promise<void>;
}

const prepareInterruptedCalls = (
  calls: readonly BegunCall[],
  policy: OnInterrupted,
): Omit<Prepared, 'conflicts'> => {
  if (calls.length === 0 || policy === 'repeat') return { question: null, failure: null };
  const shown = calls
    .map(({ call }) => `${call.tool} ${call.arguments.slice(0, maxShownLength)}`)
    .join('; ');
  if (policy === 'ask') return { question: questionAbout(shown), failure: null };
  const facts = { interrupted: true, calls: shown };
  return { question: null, failure: { ...interruptedFailure, facts } };
};

export const createAgentTurns = (ports: TurnPorts): AgentTurns => {
  const sessions = new Map<AttemptKey, Session>();
  const sessionOf = ({ taskId, attempt }: AttemptInput): Session => {
    const session = sessions.get(attemptKey(taskId, attempt));
    if (session === undefined)
      throw new Error(`attempt ${attempt} of ${taskId} was not prepared in this process`);
    return session;
  };

  const forget = async (key: AttemptKey): Promise<void> => {
    const session = sessions.get(key);
    sessions.delete(key);
    await session?.mcp.close();
  };

  const callModel = createModelCall(ports.model);
  const think = createThink(callModel, ports.model);
  const compact = createCompactor(callModel, ports.model);
  const act = createToolCalls(ports.tools);

  return {
    prepare: async ({ turns, resumeAt, ...attempt }, signal) => {
      const {
        failure,
        notes: setUpNotes,
        ...opened
      } = await openAttempt(attempt, ports.attempt, signal);
      const { conflicts } = opened.workspace;
      if (failure !== null) return { question: null, failure, conflicts };
      // A new attempt has left nothing.
      if (resumeAt !== null || turns > 0) await ports.endLeftovers(attempt.taskId, attempt.attempt);
      // `forget` has already run for an attempt that was stopped meanwhile.
      signal.throwIfAborted();
      const key = attemptKey(attempt.taskId, attempt.attempt);
      const isRestarted = resumeAt !== null && !sessions.has(key);
      const { text, logs } = folderTexts(opened.workspace);
      if (isRestarted) for (const told of logs) ports.attempt.emit(attempt, 'log', told);
      const restarted = isRestarted ? [text, ...setUpNotes] : [];
      await forget(key);
      const profile = ports.profileOf(attempt.role);
      const mcp = await ports.openMcp(attempt, opened.workspace, signal);
      if (signal.aborted) await mcp.close();
      signal.throwIfAborted();
      const notes = [...restarted, ...mcp.notes];
      const keepWork = createKeepWork(ports.attempt, attempt);
      const input = { ...opened, profile, mcp, keepWork, turns, resumeAt, notes };
      const session = createSession(input);
      const cut = isRestarted
        ? await countCutCall(ports.model, session, { ...attempt, turns })
        : null;
      sessions.set(key, session);
      const interrupted = prepareInterruptedCalls(unclearCalls(input), ports.tools.onInterrupted());
      return { ...interrupted, conflicts, cut };
    },
    think: (input, signal) => think(sessionOf(input), input, signal),
    compact: (input, signal) => compact(sessionOf(input), input, signal),
    act: (input, signal) => act(sessionOf(input), input, signal),
    note: (key, text) => sessions.get(key)?.addNote(text),
    forget,
    forgetAll: async () => void (await Promise.all([...sessions.keys()].map(forget))),
  };
};
