import { assign, setup } from 'xstate';
import type { Acted, AgentContext, AgentInput, Thought } from './agent-context.ts';
import { slot } from './slot.ts';
import type { AttemptOutcome, Failure, Role, RunOptions, Stamped, TaskId } from './task.ts';
import { noUsage } from './task.ts';

type Seat = { readonly taskId: TaskId; readonly attempt: number; readonly role: Role; readonly options: RunOptions };
const seat = ({ context: { taskId, attempt, role, options } }: { context: AgentContext }): Seat => ({
  taskId,
  attempt,
  role,
  options,
});

const because = (code: Failure['code'], message: string, facts = {}): Failure => ({
  code,
  message,
  facts,
  retryable: false,
});
const words = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);
const broken = ({ event }: { event: { readonly error: unknown } }) => ({
  failure: because('internal', words(event.error)),
});
const thought = ({ event }: { event: { readonly output: Thought } }) => ({ thought: event.output });
const acted = ({ event }: { event: { readonly output: Acted } }) => ({ acted: event.output });

/**
 * One attempt of an agent on a task: it thinks (one model call) and acts (the tool calls that the model asked for) in
 * turns until it calls `finish`. Turns, tokens, wall time and repeated calls are guards, so the chart shows why it ended.
 */
export const agentMachine = setup({
  types: {
    context: {} as AgentContext,
    input: {} as AgentInput,
    output: {} as AttemptOutcome,
    events: {} as Stamped<{ readonly type: 'DEADLINE' }>,
  },
  actors: {
    prepare: slot<void, Seat>('prepare'),
    think: slot<Thought, Seat & { readonly turn: number; readonly nudge: boolean }>('think'),
    act: slot<Acted, Seat & { readonly turn: number }>('act'),
  },
  guards: {
    outOfTime: ({ context, event }) => event.at >= context.deadlineAt,
    outOfTurns: ({ context }) => context.usage.turns >= context.limits.maxTurns,
    outOfTokens: ({ context: { usage, limits } }) =>
      limits.maxTokensTotal !== null && usage.input_tokens + usage.output_tokens >= limits.maxTokensTotal,
    repeatsItself: ({ context }) => context.repeats >= context.limits.maxRepeats,
    outOfNudges: ({ context }) => context.nudges >= context.limits.maxNudges,
    modelFailed: (_, { thought }: { thought: Thought }) => thought.kind === 'failed',
    answerTruncated: (_, { thought }: { thought: Thought }) => thought.kind === 'truncated',
    callsTools: (_, { thought }: { thought: Thought }) => thought.kind === 'calls',
    saysDone: (_, { acted }: { acted: Acted }) => acted.finish?.status === 'done',
    saysFailed: (_, { acted }: { acted: Acted }) => acted.finish?.status === 'failed',
  },
  actions: {
    countThought: assign({
      tools: (_, { thought }: { thought: Thought }) => (thought.kind === 'failed' ? [] : thought.tools),
      usage: ({ context: { usage } }, { thought }: { thought: Thought }) =>
        thought.kind === 'failed'
          ? { ...usage, model_calls: usage.model_calls + 1 }
          : {
              ...usage,
              turns: usage.turns + 1,
              model_calls: usage.model_calls + 1,
              input_tokens: usage.input_tokens + thought.inputTokens,
              output_tokens: usage.output_tokens + thought.outputTokens,
              cached_tokens: usage.cached_tokens + thought.cachedTokens,
            },
    }),
    countCalls: assign({
      usage: ({ context: { usage } }, { acted }: { acted: Acted }) => ({
        ...usage,
        tool_calls: usage.tool_calls + acted.calls,
      }),
      repeats: (_, { acted }: { acted: Acted }) => acted.repeats,
      finish: (_, { acted }: { acted: Acted }) => acted.finish,
      nudges: 0,
    }),
    countNudge: assign({ nudges: ({ context }) => context.nudges + 1 }),
    recordFailure: assign({ failure: (_, { failure }: { failure: Failure }) => failure }),
    recordModelFailure: assign({
      failure: (_, { thought }: { thought: Thought }) => (thought.kind === 'failed' ? thought.failure : null),
    }),
    blameTurns: assign({
      failure: ({ context }) =>
        because('budget_exceeded', `the limit of ${context.limits.maxTurns} turns is reached`, {
          limit: 'max_turns',
          max_turns: context.limits.maxTurns,
        }),
    }),
    blameTokens: assign({
      failure: ({ context }) =>
        because('budget_exceeded', `the limit of ${context.limits.maxTokensTotal} tokens is reached`, {
          limit: 'max_tokens_total',
          max_tokens_total: context.limits.maxTokensTotal,
        }),
    }),
    blameTime: assign({
      failure: because('timed_out', 'the attempt took longer than its limit', { limit: 'timeout_seconds' }),
    }),
    blameLoop: assign({
      failure: ({ context }) =>
        because('loop_detected', `the same call with the same result was made ${context.repeats} times in a row`, {
          tool: context.tools.at(-1),
        }),
    }),
    blameSilence: assign({
      failure: because('model_failed', 'the model stopped calling tools and did not call finish'),
    }),
    blameTruncation: assign({
      failure: because('output_truncated', "the model's answer was cut at its token limit"),
    }),
    blameAgent: assign({
      failure: (_, { acted }: { acted: Acted }) =>
        because('model_failed', `the agent gave up: ${acted.finish?.summary ?? ''}`, { gave_up: true }),
    }),
  },
}).createMachine({
  id: 'agent',
  context: ({ input }) => ({
    taskId: input?.taskId ?? ('' as TaskId),
    attempt: input?.attempt ?? 0,
    role: input?.role ?? 'engineer',
    options: input?.options ?? {},
    limits: input?.limits ?? { maxTurns: 0, maxTokensTotal: null, deadlineAt: 0, maxRepeats: 0, maxNudges: 0 },
    usage: noUsage,
    tools: [],
    finish: null,
    repeats: 0,
    nudges: 0,
    failure: null,
    deadlineAt: input?.limits.deadlineAt ?? 0,
  }),
  initial: 'preparing',
  on: { DEADLINE: { guard: 'outOfTime', target: '.failed', actions: 'blameTime' } },
  states: {
    preparing: {
      tags: 'phase:preparing',
      meta: { says: 'opens the workspace and writes the first message' },
      invoke: {
        id: 'prepare',
        src: 'prepare',
        input: seat,
        onDone: 'considering',
        onError: { target: 'failed', actions: { type: 'recordFailure', params: broken } },
      },
    },
    considering: {
      meta: { says: 'may it take another turn?' },
      always: [
        { guard: 'outOfTurns', target: 'failed', actions: 'blameTurns' },
        { guard: 'outOfTokens', target: 'failed', actions: 'blameTokens' },
        { guard: 'repeatsItself', target: 'failed', actions: 'blameLoop' },
        { target: 'thinking' },
      ],
    },
    thinking: {
      tags: 'phase:thinking',
      meta: { says: 'one call of the language model' },
      invoke: {
        id: 'think',
        src: 'think',
        input: ({ context }) => ({
          ...seat({ context }),
          turn: context.usage.turns + 1,
          nudge: context.nudges > 0,
        }),
        onDone: [
          {
            guard: { type: 'modelFailed', params: thought },
            target: 'failed',
            actions: [
              { type: 'countThought', params: thought },
              { type: 'recordModelFailure', params: thought },
            ],
          },
          {
            guard: { type: 'answerTruncated', params: thought },
            target: 'failed',
            actions: [{ type: 'countThought', params: thought }, 'blameTruncation'],
          },
          {
            guard: { type: 'callsTools', params: thought },
            target: 'acting',
            actions: { type: 'countThought', params: thought },
          },
          {
            guard: 'outOfNudges',
            target: 'failed',
            actions: [{ type: 'countThought', params: thought }, 'blameSilence'],
          },
          { target: 'considering', actions: [{ type: 'countThought', params: thought }, 'countNudge'] },
        ],
        onError: { target: 'failed', actions: { type: 'recordFailure', params: broken } },
      },
    },
    acting: {
      tags: 'phase:acting',
      meta: { says: 'the tool calls of this turn' },
      invoke: {
        id: 'act',
        src: 'act',
        input: ({ context }) => ({ ...seat({ context }), turn: context.usage.turns }),
        onDone: [
          {
            guard: { type: 'saysDone', params: acted },
            target: 'done',
            actions: { type: 'countCalls', params: acted },
          },
          {
            guard: { type: 'saysFailed', params: acted },
            target: 'failed',
            actions: [
              { type: 'countCalls', params: acted },
              { type: 'blameAgent', params: acted },
            ],
          },
          { target: 'considering', actions: { type: 'countCalls', params: acted } },
        ],
        onError: { target: 'failed', actions: { type: 'recordFailure', params: broken } },
      },
    },
    done: { type: 'final', tags: ['ended', 'phase:closing'], meta: { says: 'the agent called finish' } },
    failed: {
      type: 'final',
      tags: ['ended', 'phase:closing'],
      meta: { says: 'a limit, the model or the agent itself ended the attempt' },
    },
  },
  output: ({ context }): AttemptOutcome =>
    context.failure === null
      ? {
          status: 'done',
          summary: context.finish?.summary ?? '',
          artifacts: context.finish?.artifacts ?? [],
          usage: context.usage,
        }
      : { status: 'failed', failure: context.failure, usage: context.usage },
});
