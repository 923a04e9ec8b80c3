import { dayMs, hourMs } from '../milliseconds.ts';
import { type Failure, failureOf } from '../task.ts';
import type { Acted, AgentContext } from './agent-context.ts';
import { seconds } from './agent-selectors.ts';

export const longestSlotWaitMs = dayMs;

export const turnLimitReached = ({ limits }: AgentContext): Failure =>
  failureOf('budget_exceeded', `the limit of ${limits.maxTurns} turns is reached`, {
    limit: 'max_turns',
    max_turns: limits.maxTurns,
  });

export const tokenLimitReached = ({ limits }: AgentContext): Failure =>
  failureOf('budget_exceeded', `the limit of ${limits.maxTokensTotal} tokens is reached`, {
    limit: 'max_tokens_total',
    max_tokens_total: limits.maxTokensTotal,
  });

export const costLimitReached = ({ limits, usage }: AgentContext): Failure =>
  failureOf(
    'budget_exceeded',
    usage.cost_usd === undefined
      ? `the limit of ${limits.maxCostUsd} USD cannot be enforced: the price of the model is unknown`
      : `the limit of ${limits.maxCostUsd} USD is reached`,
    { limit: 'max_cost_usd', max_cost_usd: limits.maxCostUsd, cost_usd: usage.cost_usd ?? null },
  );

const timedOut = ({ limits: { wallMs } }: AgentContext, during: string, facts = {}): Failure =>
  failureOf(
    'timed_out',
    `${wallMs === undefined ? 'the limit' : `the ${seconds(wallMs)} s limit`} was reached${during}`,
    { limit: 'timeout_seconds', ...facts },
  );

export const timeLimitReached = (context: AgentContext): Failure => {
  const { modelTries, modelFault } = context;
  if (modelFault === undefined) return timedOut(context, '');
  const times = modelTries === 1 ? 'once' : `${modelTries} times`;
  return timedOut(context, ` while retrying the provider: ${modelFault}, ${times}`, {
    model_failures: modelTries,
    cause: modelFault,
  });
};

export const timeLimitInTools = (context: AgentContext): Failure => {
  const tools = [...new Set(context.calls.map(({ tool }) => tool))];
  return timedOut(context, ` while ${tools.join(' and ')} was running`, { tools });
};

export const unansweredQuestion = ({ limits, question }: AgentContext): Failure =>
  failureOf('timed_out', `nobody answered within ${seconds(limits.answerMs)} s`, {
    limit: 'answer_timeout_seconds',
    question: question?.text,
  });

export const noSlotAfterAnswer = failureOf(
  'timed_out',
  `no slot became free within ${longestSlotWaitMs / hourMs} h after the answer`,
);

export const repeatedCalls = ({ repeats, calls: made }: AgentContext): Failure =>
  failureOf(
    'loop_detected',
    `the same call with the same result was made ${repeats} times in a row`,
    {
      tool: made.at(-1)?.tool,
    },
  );

export const malformedCalls = ({ strikes, problem }: AgentContext): Failure =>
  failureOf(
    'model_failed',
    `the model made only malformed tool calls in ${strikes} turns in a row: ${problem}`,
    {
      kind: 'malformed_calls',
      problem,
    },
  );

export const conversationTooLong = ({ limits }: AgentContext): Failure =>
  failureOf(
    'model_failed',
    "the conversation is longer than the model's context, also after its older part was replaced by a summary",
    { kind: 'context_overflow', compacted: true, context_window: limits.contextWindow },
  );

export const noToolCalls = failureOf(
  'model_failed',
  'the agent stopped without a result: the model called no tool and did not call finish',
  { no_result: true },
);

export const truncatedAnswers = ({ cuts }: AgentContext): Failure =>
  failureOf(
    'output_truncated',
    `the model's answer was cut at its token limit, ${cuts + 1} times in a row`,
  );

export const agentGaveUp = ({ finish }: Acted): Failure =>
  failureOf('model_failed', `the agent gave up: ${finish?.summary ?? ''}`, { gave_up: true });
