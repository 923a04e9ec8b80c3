import { assign, setup } from 'xstate';
import { declareActor } from '../declare-actor.ts';
import { failureAtEnd, mayPark, parkingFor } from '../parking.ts';
import type { AttemptInput, AttemptOutcome, Failure } from '../task.ts';
import type {
  Acted,
  AgentContext,
  AgentEvent,
  AgentStart,
  Compacted,
  Delegated,
  GoesOnAt,
  Prepared,
  Response,
  Resume,
  Spent,
  StartConflict,
  Tell,
  Thought,
} from './agent-context.ts';
import * as failures from './agent-failures.ts';
import { hasRoomFor, mustReadOn, toldNext } from './agent-messages.ts';
import {
  answers,
  approvalQuestion,
  asks,
  countedUsage,
  fallbackOf,
  isLate,
  isOverMoney,
  isOverTokens,
  isOverTurns,
  isPauseOver,
  isTooLong,
  longestModelPauseMs,
  needsApproval,
  pauseAfterFailure,
  saysTooLong,
  waitedUntil,
  withSpent,
} from './agent-rules.ts';
import type {
  ActInput,
  CompactInput,
  DelegateInput,
  PrepareInput,
  ThinkInput,
} from './agent-selectors.ts';

type Preparing = { prepared: Prepared };
type Thinking = { thought: Thought };
type Failing = { failure: Failure | null };
type Compacting = { compacted: Compacted };
type Acting = { acted: Acted };
type Delegating = { delegated: Delegated };
type Spending = { spent: Spent };
type Responding = { response: Response };
type Telling = { tell: Tell };
type Timed = { context: AgentContext; event: AgentEvent };

const waitIsOver = {
  waitedMs: ({ context, event }: Timed) => waitedUntil(context, event.at),
  askedAt: undefined,
};

export const agentSetup = setup({
  types: {
    context: {} as AgentContext,
    input: {} as AgentStart,
    output: {} as AttemptOutcome,
    events: {} as AgentEvent,
  },
  actors: {
    prepare: declareActor<Prepared, PrepareInput>('prepare'),
    think: declareActor<Thought, ThinkInput>('think'),
    compact: declareActor<Compacted, CompactInput>('compact'),
    act: declareActor<Acted, ActInput>('act'),
    delegate: declareActor<Delegated, DelegateInput>('delegate'),
    lendSlot: declareActor<void, Pick<AttemptInput, 'taskId'>>('lendSlot'),
    regainSlot: declareActor<void, Pick<AttemptInput, 'taskId'>>('regainSlot'),
  },
  guards: {
    outOfTime: ({ context, event }) => isLate(context, event.at),
    outOfTurns: ({ context }) => context.usage.turns >= context.limits.maxTurns,
    outOfTokens: ({ context: { usage, limits } }) =>
      limits.maxTokensTotal !== null &&
      usage.input_tokens + usage.output_tokens >= limits.maxTokensTotal,
    /** An unknown cost exceeds the limit: the limit is a promise. */
    outOfMoney: ({ context: { usage, limits } }) =>
      limits.maxCostUsd !== null &&
      (usage.cost_usd ?? (usage.turns > 0 ? Number.POSITIVE_INFINITY : 0)) >= limits.maxCostUsd,
    /** A failed call costs, too; no further one is made, whatever its failure would allow. */
    failsOverMoney: ({ context }, { spent }: { spent: Spent | null }) =>
      spent !== null && spent.costUsd !== null && isOverMoney(context, spent),
    repeatsItself: ({ context }) => context.repeats >= context.limits.maxRepeats,
    outOfStrikes: ({ context }) =>
      context.strikes > 0 && context.strikes >= context.limits.maxStrikes,
    isTooLong: ({ context }) => isTooLong(context),
    compactedInVain: ({ context }) =>
      isTooLong(context) &&
      context.compactedFor > 0 &&
      context.compactedFor === context.usage.turns,
    mayCompact: ({ context }, { failure }: Failing) =>
      saysTooLong(failure) && context.compactedFor !== context.usage.turns + 1,
    overflowed: (_, { failure }: Failing) => saysTooLong(failure),
    mayCompactAgain: ({ context, event }) => isPauseOver(context, event.at) && isTooLong(context),
    outOfNudges: ({ context }) => context.nudges >= context.limits.maxNudges,
    resumesAt: ({ context }, { at }: { at: Resume['at'] }) => context.resumeAt === at,
    isUnclear: (_, { prepared }: Preparing) => prepared.question !== null,
    mayNotGoOn: (_, { prepared }: Preparing) => prepared.failure !== null,
    mayAskAgain: ({ context }, { failure }: Failing) =>
      failure?.retryable === true &&
      context.modelTries < context.limits.maxModelRetries &&
      pauseAfterFailure(failure, context) <= longestModelPauseMs,
    mayPark: ({ context }, { failure }: Failing) => mayPark(failure, context),
    pauseIsOver: ({ context, event }) => isPauseOver(context, event.at),
    modelFailed: (_, { failure }: Failing) => failure !== null,
    answerTruncated: (_, { thought }: Thinking) => thought.kind === 'truncated',
    outOfCuts: ({ context: { cuts, limits } }, { thought }: Thinking) =>
      thought.kind === 'truncated' && cuts + 1 >= limits.maxStrikes,
    callsTools: (_, { thought }: Thinking) => thought.kind === 'calls',
    needsApproval: ({ context }, { thought }: Thinking) =>
      thought.kind === 'calls' && thought.calls.some((call) => needsApproval(call, context.limits)),
    saysDone: (_, { acted }: Acting) => acted.finish?.status === 'done',
    saysFailed: (_, { acted }: Acting) => acted.finish?.status === 'failed',
    asksPerson: (_, { acted }: Acting) => acted.question !== null,
    hasRoomFor: ({ context }, { tell }: Telling) => hasRoomFor(context, tell),
    saysDoneUnaware: ({ context }, { acted }: Acting) =>
      acted.finish?.status === 'done' && mustReadOn(context, context.usage),
    doneUnaware: ({ context }, { delegated }: Delegating) =>
      delegated.kind === 'done' && mustReadOn(context, withSpent(context.usage, delegated.spent)),
    answersQuestion: ({ context }, { response }: Responding) => answers(context, response),
    hasFallback: ({ context, event }) => isLate(context, event.at) && fallbackOf(context) !== null,
    /** During `preparing`, after a restart. */
    hadFallback: ({ context, event }, { at }: { at: Resume['at'] }) =>
      isLate(context, event.at) && context.resumeAt === at && fallbackOf(context) !== null,
    wasAsking: ({ context, event }) =>
      isLate(context, event.at) && asks.some((state) => state === context.resumeAt),
    wasReturning: ({ context, event }) =>
      isLate(context, event.at) && context.resumeAt === 'returning',
    goesOn: ({ context }, { at }: { at: GoesOnAt }) => context.goesOnAt === at,
    decidesOnAssistant: ({ context }, { response }: Responding) =>
      context.backend !== 'builtin' && answers(context, response),
    asksPermission: (_, { delegated }: Delegating) => delegated.kind === 'asks',
    isDelegated: ({ context }) => context.backend !== 'builtin',
    assistantFailed: (_, { delegated }: Delegating) => delegated.kind === 'failed',
    overTurns: ({ context }, { spent }: Spending) => isOverTurns(context, spent),
    overTokens: ({ context }, { spent }: Spending) => isOverTokens(context, spent),
    overMoney: ({ context }, { spent }: Spending) => isOverMoney(context, spent),
    asksOverTurns: ({ context }, { delegated }: Delegating) =>
      delegated.kind === 'asks' && isOverTurns(context, delegated.spent),
    asksOverTokens: ({ context }, { delegated }: Delegating) =>
      delegated.kind === 'asks' && isOverTokens(context, delegated.spent),
    asksOverMoney: ({ context }, { delegated }: Delegating) =>
      delegated.kind === 'asks' && isOverMoney(context, delegated.spent),
  },
  actions: {
    countThought: assign({
      calls: (_, { thought }: Thinking) => (thought.kind === 'failed' ? [] : thought.calls),
      usage: ({ context }, { thought }: Thinking) => countedUsage(context.usage, thought),
      // After a failed call the model has not seen it.
      answer: ({ context }, { thought }: Thinking) =>
        thought.kind === 'failed' ? context.answer : null,
      told: ({ context }, { thought }: Thinking) =>
        thought.kind === 'failed' ? context.told : undefined,
      modelTries: ({ context }, { thought }: Thinking) =>
        thought.kind === 'failed' ? context.modelTries : 0,
      parks: ({ context }, { thought }: Thinking) =>
        thought.kind === 'failed' ? (context.parks ?? 0) : 0,
      modelFault: ({ context }, { thought }: Thinking) =>
        thought.kind === 'failed' ? context.modelFault : undefined,
      conversationTokens: ({ context }, { thought }: Thinking) =>
        thought.kind === 'failed' ? context.conversationTokens : thought.inputTokens,
    }),
    noteOverflow: assign({ overflowed: true }),
    countCutCall: assign({
      usage: ({ context }, { spent }: { spent: Spent | null }) =>
        spent === null ? context.usage : withSpent(context.usage, spent, 0),
    }),
    countSummary: assign({
      usage: ({ context }, { compacted }: Compacting) =>
        withSpent(context.usage, compacted.spent, 0),
    }),
    noteCompaction: assign({
      compactedFor: ({ context }) => context.usage.turns + 1,
      conversationTokens: 0,
      overflowed: false,
      modelTries: 0,
      modelFault: undefined,
    }),
    setPause: assign(({ context, event }, { failure }: Failing) => ({
      modelTries: context.modelTries + 1,
      modelFault: failure?.message,
      limitAt: context.deadlineAt,
      deadlineAt: Math.min(
        context.deadlineAt ?? Number.POSITIVE_INFINITY,
        event.at + (failure === null ? 0 : pauseAfterFailure(failure, context)),
      ),
    })),
    /** The clock of the attempt stops. */
    park: assign(({ context, event }, { failure, at }: Failing & { at: Resume['at'] }) => ({
      parking: failure === null ? undefined : parkingFor(failure, context, event.at),
      parks: (context.parks ?? 0) + 1,
      resumeAt: at,
      remainingMs: Math.max(0, (context.deadlineAt ?? event.at) - event.at),
      modelTries: 0,
      modelFault: undefined,
    })),
    endPause: assign({
      deadlineAt: ({ context }) => context.limitAt ?? context.deadlineAt,
      limitAt: null,
    }),
    countCalls: assign({
      usage: ({ context: { usage } }, { acted }: Acting) => ({
        ...usage,
        tool_calls: usage.tool_calls + acted.calls,
      }),
      repeats: (_, { acted }: Acting) => acted.repeats,
      strikes: ({ context }, { acted }: Acting) =>
        acted.malformed === null ? 0 : context.strikes + 1,
      problem: (_, { acted }: Acting) => acted.malformed,
      finish: (_, { acted }: Acting) => acted.finish,
      answer: ({ context: { answer } }) => (answer?.allowed === true ? answer : null),
      nudges: 0,
      cuts: 0,
      decision: null,
    }),
    keepMessage: assign({
      unread: ({ context: { unread = [] } }, { tell }: Telling) => [...unread, tell.text],
    }),
    giveMessages: assign(({ context }) => toldNext(context)),
    /** It ended before it read what a person said. */
    goOnTold: assign({
      wentOn: ({ context }) => (context.wentOn ?? 0) + 1,
      told: undefined,
      finish: null,
      repeats: 0,
      answer: null,
      decision: null,
    }),
    forgetResume: assign({ resumeAt: null }),
    countDelegated: assign({
      usage: ({ context }, { delegated }: Delegating) => withSpent(context.usage, delegated.spent),
    }),
    countSpent: assign({
      parks: 0,
      usage: ({ context }, { spent }: Spending) => withSpent(context.usage, spent),
    }),
    takeDelegated: assign({
      usage: ({ context }, { delegated }: Delegating) => withSpent(context.usage, delegated.spent),
      finish: (_, { delegated }: Delegating) =>
        delegated.kind === 'done'
          ? {
              status: 'done' as const,
              summary: delegated.summary,
              artifacts: delegated.artifacts,
              answers: delegated.answers,
            }
          : null,
      failure: ({ context }, { delegated }: Delegating) =>
        failureAtEnd(delegated.kind === 'failed' ? delegated.failure : null, context),
      answer: null,
      told: undefined,
      decision: null,
    }),
    noteConflicts: assign({
      conflicts: ({ context }, { conflicts }: { conflicts: readonly StartConflict[] | null }) => {
        const found = conflicts ?? context.conflicts ?? [];
        return found.length === 0 ? undefined : found;
      },
    }),
    refuseToGoOn: assign({ failure: (_, { prepared }: Preparing) => prepared.failure }),
    askDecision: assign({
      question: ({ context }, { prepared }: Preparing) => ({
        inputId: `unclear-${context.usage.turns}`,
        kind: 'input' as const,
        text: prepared.question ?? '',
        calls: context.calls,
        fallback: null,
      }),
    }),
    takeDecision: assign({ decision: (_, { response }: Responding) => response.text }),
    countNudge: assign({ nudges: ({ context }) => context.nudges + 1, cuts: 0 }),
    countCut: assign({ cuts: ({ context }) => context.cuts + 1 }),
    askInput: assign({
      question: ({ context }, { acted }: Acting) => ({
        inputId: `input-${context.usage.turns}`,
        kind: 'input' as const,
        text: acted.question ?? '',
        calls: [],
        fallback: context.limits.defaultAnswer,
      }),
    }),
    askApproval: assign({
      question: ({ context }) => ({
        inputId: `approval-${context.usage.turns}`,
        kind: 'approval' as const,
        text: approvalQuestion(context),
        calls: context.calls.filter((call) => needsApproval(call, context.limits)),
        fallback: context.limits.defaultDecision,
      }),
    }),
    askPermission: assign(({ context }, { delegated }: Delegating) =>
      delegated.kind === 'asks'
        ? {
            calls: [delegated.call],
            answer: null,
            decision: null,
            question: {
              inputId: `approval-${delegated.questionId}`,
              kind: 'approval' as const,
              text: 'The assistant wants to make this call. May it?',
              calls: [delegated.call],
              fallback: context.limits.defaultDecision,
            },
          }
        : {},
    ),
    stopClock: assign({
      remainingMs: ({ context, event }) => Math.max(0, (context.deadlineAt ?? event.at) - event.at),
      deadlineAt: ({ context: { limits }, event }) =>
        limits.answerMs === 0 ? null : event.at + limits.answerMs,
      askedAt: ({ event }) => event.at,
    }),
    startClock: assign({
      ...waitIsOver,
      deadlineAt: ({ context, event }) => event.at + context.remainingMs,
      goesOnAt: null,
    }),
    /** The clock stops until the slot is back; that wait has its own limit. */
    goOnLater: assign({
      goesOnAt: ({ context }, { at }: { at: GoesOnAt }) =>
        at === 'acting' && context.backend !== 'builtin' ? 'delegating' : at,
      deadlineAt: ({ event }) => event.at + failures.longestSlotWaitMs,
      question: null,
    }),
    takeAnswer: assign({
      answer: (_, { response }: Responding) => ({
        from: 'person' as const,
        text: response.text,
        allowed: response.decision !== 'deny',
      }),
    }),
    takeFallback: assign({
      answer: ({ context }) => {
        const isQuestion = context.question?.kind === 'input';
        return {
          from: 'nobody' as const,
          text: isQuestion ? fallbackOf(context) : null,
          allowed: isQuestion,
        };
      },
    }),
    returnLater: assign({ resumeAt: 'returning' }),
    recordFailure: assign({ failure: (_, { failure }: { failure: Failure }) => failure }),
    recordModelFailure: assign({
      failure: ({ context }, { failure }: Failing) => failureAtEnd(failure, context),
    }),
    ignore: () => {},
    recordTurnLimit: assign({ failure: ({ context }) => failures.turnLimitReached(context) }),
    recordTokenLimit: assign({ failure: ({ context }) => failures.tokenLimitReached(context) }),
    recordCostLimit: assign({ failure: ({ context }) => failures.costLimitReached(context) }),
    recordTimeLimit: assign({ failure: ({ context }) => failures.timeLimitReached(context) }),
    recordTimeLimitInTools: assign({
      failure: ({ context }) => failures.timeLimitInTools(context),
    }),
    recordNoAnswer: assign({
      ...waitIsOver,
      failure: ({ context }) => failures.unansweredQuestion(context),
    }),
    recordNoSlot: assign({ ...waitIsOver, failure: failures.noSlotAfterAnswer }),
    recordLoop: assign({ failure: ({ context }) => failures.repeatedCalls(context) }),
    recordMalformedCalls: assign({ failure: ({ context }) => failures.malformedCalls(context) }),
    recordTooLong: assign({ failure: ({ context }) => failures.conversationTooLong(context) }),
    recordNoToolCalls: assign({ failure: failures.noToolCalls }),
    recordTruncation: assign({ failure: ({ context }) => failures.truncatedAnswers(context) }),
    recordGivenUp: assign({ failure: (_, { acted }: Acting) => failures.agentGaveUp(acted) }),
  },
});
