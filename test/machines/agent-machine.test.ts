import { describe, expect, test } from 'vitest';
import type { AgentContext, Delegated, Thought } from '../../src/machines/agent/agent-context.ts';
import { agentMachine } from '../../src/machines/agent/agent-machine.ts';
import { longestParkMs, parksAtMost, unknownParkMs } from '../../src/machines/parking.ts';
import { type Failure, noUsage, type TaskId } from '../../src/machines/task.ts';
import { at, broken, done, edgeOf, edgesOf, pathOf, type Row, step } from './chart.ts';

const limits = {
  maxTurns: 3,
  maxTokensTotal: 100,
  maxCostUsd: 0.5,
  deadlineAt: at,
  answerMs: 1_000,
  defaultAnswer: null,
  defaultDecision: null,
  maxRepeats: 3,
  maxNudges: 1,
  maxModelRetries: 2,
  maxStrikes: 3,
  contextWindow: 1_000,
  approvals: ['bash'],
};
const callsOf = (...tools: readonly string[]) =>
  tools.map((tool, index) => ({ call_id: `call_${index}`, tool, arguments: '{}' }));
const asked = (kind: 'input' | 'approval', inputId: string, fallback: string | null = null) => ({
  question: { inputId, kind, text: 'which one?', calls: [], fallback },
  remainingMs: 5_000,
});
const respond = (
  inputId: string,
  text: string | null,
  decision: 'allow' | 'deny' | null = null,
) => ({
  type: 'respond',
  inputId,
  text,
  decision,
  at,
});
const tell = (text: string) => ({ type: 'tell', text, at });
const waitsForSlot = (goesOnAt: 'considering' | 'acting' | 'delegating') => ({
  goesOnAt,
  question: null,
  deadlineAt: at + 24 * 3_600_000,
});
const fresh: AgentContext = {
  taskId: 'bd-a1' as TaskId,
  attempt: 1,
  role: 'engineer',
  backend: 'builtin',
  options: {},
  limits,
  usage: noUsage,
  calls: [],
  finish: null,
  repeats: 0,
  nudges: 0,
  cuts: 0,
  strikes: 0,
  problem: null,
  conversationTokens: 0,
  overflowed: false,
  compactedFor: 0,
  question: null,
  answer: null,
  decision: null,
  goesOnAt: null,
  modelTries: 0,
  limitAt: null,
  round: 0,
  resumeAt: null,
  remainingMs: 0,
  failure: null,
  deadlineAt: at,
};
const thought = (
  kind: 'calls' | 'answer' | 'truncated',
  tools: readonly string[] = [],
): Thought => ({
  kind,
  calls: callsOf(...tools),
  inputTokens: 10,
  outputTokens: 5,
  cachedTokens: 2,
  costUsd: 0.25,
});
const failure: Failure = { code: 'model_failed', message: 'away', facts: {}, retryable: true };
const overflow: Failure = { ...failure, facts: { kind: 'context_overflow' }, retryable: false };
const compacted = (over: object = {}) => ({
  kind: 'compacted',
  spent: { ...spent(over), toolCalls: 0 },
});
const ready = { question: null, failure: null };
const acted = (status: 'done' | 'failed' | null, repeats = 1, question: string | null = null) => ({
  calls: 2,
  repeats,
  question,
  malformed: null,
  finish: status === null ? null : { status, summary: 'so it is', artifacts: ['a.txt'] },
});
const turn = {
  ...noUsage,
  turns: 1,
  model_calls: 1,
  input_tokens: 10,
  output_tokens: 5,
  cached_tokens: 2,
  cost_usd: 0.25,
};
const spent = (over: object = {}) => ({
  modelCalls: 1,
  toolCalls: 2,
  inputTokens: 10,
  outputTokens: 5,
  cachedTokens: 2,
  costUsd: 0.25,
  ...over,
});
const delegated = (over: object = {}): Delegated => ({
  kind: 'done',
  summary: 'it says so',
  artifacts: ['b.txt'],
  spent: spent(over),
});
const reports = (over: object = {}) => ({ type: 'assistant.reported', spent: spent(over), at });
const why = (code: string) => ({ failure: expect.objectContaining({ code }) });

const asking = { from: 'person' as const, text: 'left', allowed: true };
const inTime = { deadlineAt: at + 1 };
const late = { type: 'DEADLINE', at };

const longPause: Failure = {
  code: 'model_failed',
  message: 'slow down',
  facts: { retry_after_ms: 3_600_000 },
  retryable: true,
};
const usedUp: Failure = { ...longPause, facts: { kind: 'insufficient_quota' }, retryable: false };
const nothingSpent = {
  ...{ modelCalls: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, cachedTokens: 0 },
  costUsd: null,
};
const parkedFor = (ms: number, resumeAt: string) => ({
  parking: { until: at + ms, reason: 'provider limit: slow down', backend: 'builtin' },
  parks: 1,
  resumeAt,
  remainingMs: 5_000,
  failure: null,
});
const timed = { deadlineAt: at + 5_000 };
const quotaRow = (from: string, actor: string, output: object): Row => ({
  says: 'a used-up quota without a time parks it there for an hour',
  from,
  event: done(actor, { kind: 'failed', failure: usedUp, ...output }),
  given: timed,
  to: 'parked',
  expected: parkedFor(unknownParkMs, from),
});
const parkedRows: readonly Row[] = [
  quotaRow('thinking', 'think', {}),
  quotaRow('compacting', 'compact', { spent: nothingSpent }),
  quotaRow('delegating', 'delegate', { spent: nothingSpent }),
  {
    says: 'a provider that asks for a long pause parks it, and its clock stops',
    from: 'thinking',
    event: done('think', { kind: 'failed', failure: longPause }),
    given: timed,
    to: 'parked',
    expected: parkedFor(3_600_000, 'thinking'),
  },
  {
    says: 'a pause without end is a week',
    from: 'thinking',
    event: done('think', {
      kind: 'failed',
      failure: { ...longPause, facts: { retry_after_ms: 10 ** 16 } },
    }),
    given: timed,
    to: 'parked',
    expected: parkedFor(longestParkMs, 'thinking'),
  },
  {
    says: 'a limit that never ends fails it, without another attempt',
    from: 'thinking',
    event: done('think', { kind: 'failed', failure: longPause }),
    given: { ...timed, parks: parksAtMost },
    to: 'failed',
    expected: { failure: { ...longPause, retryable: false } },
  },
  {
    says: 'a limit fails it where the user chose so',
    from: 'thinking',
    event: done('think', { kind: 'failed', failure: longPause }),
    given: { ...timed, limits: { ...limits, onQuota: 'fail' } },
    to: 'failed',
    expected: { failure: { ...longPause, retryable: false } },
  },
];

const rows: readonly Row[] = [
  {
    says: 'a prepared agent thinks',
    from: 'preparing',
    event: done('prepare', ready),
    given: inTime,
    to: 'thinking',
    target: 'considering',
  },
  ...(
    [
      'thinking',
      'compacting',
      'acting',
      'delegating',
      'awaitingInput',
      'awaitingApproval',
      'awaitingDecision',
      'returning',
    ] as const
  ).map((resumeAt) => ({
    says: 'an agent of an earlier process resumes at its saved state',
    from: 'preparing',
    event: done('prepare', ready),
    given: { ...inTime, resumeAt, usage: turn, ...asked('input', 'input-1') },
    to: resumeAt,
    expected: { resumeAt: null, usage: turn, deadlineAt: at + 1, ...asked('input', 'input-1') },
  })),
  {
    says: 'a time limit that passed during the restart ends it',
    from: 'preparing',
    event: done('prepare', { ...ready, question: 'what now?' }),
    given: { resumeAt: 'acting' },
    to: 'failed',
    expected: why('timed_out'),
  },
  {
    says: 'a call with an unknown outcome leads to a question',
    from: 'preparing',
    event: done('prepare', { ...ready, question: 'what now?' }),
    given: { deadlineAt: at + 7, resumeAt: 'acting', usage: turn },
    to: 'awaitingDecision',
    expected: {
      question: {
        inputId: 'unclear-1',
        kind: 'input',
        text: 'what now?',
        calls: [],
        fallback: null,
      },
      remainingMs: 7,
      deadlineAt: at + 1_000,
      resumeAt: 'acting',
    },
  },
  {
    says: 'with the policy fail, such a call ends the attempt',
    from: 'preparing',
    event: done('prepare', { ...ready, failure }),
    to: 'failed',
    expected: { failure },
  },
  {
    says: 'the decision on a call waits for a slot',
    from: 'awaitingDecision',
    event: respond('unclear-1', 'repeat'),
    given: { ...asked('input', 'unclear-1'), resumeAt: 'acting' },
    to: 'returning',
    expected: { ...waitsForSlot('acting'), decision: 'repeat', resumeAt: null },
  },
  {
    says: 'the decision on an assistant waits for a slot',
    from: 'awaitingDecision',
    event: respond('unclear-1', 'repeat'),
    given: { ...asked('input', 'unclear-1'), resumeAt: 'delegating', backend: 'codex' },
    to: 'returning',
    expected: { ...waitsForSlot('delegating'), decision: 'repeat', resumeAt: null },
  },
  {
    says: 'an assistant starts on its prepared task',
    from: 'preparing',
    event: done('prepare', ready),
    given: { ...inTime, backend: 'codex' },
    to: 'delegating',
    target: 'considering',
  },
  {
    says: 'the reported usage of an assistant is counted while it works',
    from: 'delegating',
    event: reports(),
    given: { usage: { ...turn, tool_calls: 1, cost_usd: 0.1, cache_write_tokens: 3 } },
    to: 'delegating',
    expected: {
      usage: {
        ...noUsage,
        cache_write_tokens: 3,
        turns: 2,
        model_calls: 2,
        tool_calls: 3,
        input_tokens: 20,
        output_tokens: 10,
        cached_tokens: 4,
        cost_usd: 0.35,
      },
    },
  },
  {
    says: 'an assistant that takes a turn too many is ended',
    from: 'delegating',
    event: reports(),
    given: { usage: { ...noUsage, turns: 3 } },
    to: 'failed',
    expected: { ...why('budget_exceeded'), usage: { turns: 4 } },
  },
  {
    says: 'an assistant that uses too many tokens is ended',
    from: 'delegating',
    event: reports({ inputTokens: 95 }),
    to: 'failed',
    expected: { failure: { facts: { limit: 'max_tokens_total' } }, usage: { input_tokens: 95 } },
  },
  {
    says: 'an assistant that costs too much is ended',
    from: 'delegating',
    event: reports({ costUsd: 0.5 }),
    to: 'failed',
    expected: { failure: { facts: { limit: 'max_cost_usd', cost_usd: 0.5 } } },
  },
  {
    says: 'the result of an assistant ends it as done',
    from: 'delegating',
    event: done('delegate', delegated()),
    given: { answer: asking, decision: 'repeat' },
    to: 'done',
    expected: {
      usage: { ...turn, tool_calls: 2 },
      finish: { status: 'done', summary: 'it says so', artifacts: ['b.txt'] },
      answer: null,
      decision: null,
    },
  },
  {
    says: 'the failure of an assistant ends it, with its usage',
    from: 'delegating',
    event: done('delegate', { kind: 'failed', failure, spent: spent({ costUsd: null }) }),
    to: 'failed',
    expected: { failure, finish: null, usage: { turns: 1, tool_calls: 2 } },
  },
  {
    says: 'an assistant that asks for permission waits for a person',
    from: 'delegating',
    event: done('delegate', {
      kind: 'asks',
      questionId: 'q1',
      call: { call_id: 'c1', tool: 'edit', arguments: '{}' },
      spent: spent(),
    }),
    given: { deadlineAt: at + 7_000, answer: asking, backend: 'acp' },
    to: 'awaitingApproval',
    expected: {
      usage: { turns: 1 },
      calls: [{ call_id: 'c1' }],
      answer: null,
      question: {
        inputId: 'approval-q1',
        kind: 'approval',
        calls: [{ tool: 'edit' }],
        fallback: null,
      },
      remainingMs: 7_000,
      deadlineAt: at + 1_000,
    },
  },
  {
    says: 'after the permission the assistant goes on when it has a slot',
    from: 'awaitingApproval',
    event: respond('approval-q1', null, 'allow'),
    given: { ...asked('approval', 'approval-q1'), backend: 'acp' },
    to: 'returning',
    expected: { ...waitsForSlot('delegating'), answer: { from: 'person', allowed: true } },
  },
  {
    says: 'a permission that nobody gives in time is denied, and the assistant goes on',
    from: 'awaitingApproval',
    event: late,
    given: { ...asked('approval', 'approval-q1', 'deny'), backend: 'acp' },
    to: 'returning',
    expected: { ...waitsForSlot('delegating'), answer: { from: 'nobody', allowed: false } },
  },
  {
    says: 'an assistant that ends while it waits for a permission withdraws the question',
    from: 'awaitingApproval',
    event: Object.assign({ type: 'assistant.ended' }, { at }),
    given: { ...asked('approval', 'approval-q1'), backend: 'acp' },
    to: 'returning',
    expected: { ...waitsForSlot('delegating'), question: null, answer: null },
  },
  {
    says: 'an assistant that could not start ends it',
    from: 'delegating',
    event: broken('delegate'),
    to: 'failed',
    expected: why('internal'),
  },
  {
    says: 'a decision that never comes ends it',
    from: 'awaitingDecision',
    event: late,
    given: asked('input', 'unclear-1'),
    to: 'failed',
    expected: why('timed_out'),
  },
  {
    says: 'a workspace that cannot be opened ends it',
    from: 'preparing',
    event: broken('prepare'),
    to: 'failed',
    expected: why('internal'),
  },
  {
    says: 'tool calls are executed',
    from: 'thinking',
    event: done('think', thought('calls', ['read', 'find'])),
    to: 'acting',
    expected: { usage: turn, calls: callsOf('read', 'find') },
  },
  {
    says: 'a temporary failure of a model call leads to a retry after a pause',
    from: 'thinking',
    event: done('think', { kind: 'failed', failure }),
    given: { deadlineAt: at + 60_000, answer: asking },
    to: 'pausing',
    expected: {
      modelTries: 1,
      limitAt: at + 60_000,
      answer: asking,
      usage: { ...noUsage, model_calls: 1 },
    },
  },
  {
    says: 'a lasting failure of a model call ends it',
    from: 'thinking',
    event: done('think', { kind: 'failed', failure: { ...failure, retryable: false } }),
    to: 'failed',
    expected: why('model_failed'),
  },
  ...parkedRows,
  {
    says: 'a conversation that the provider refuses as too long is compacted',
    from: 'thinking',
    event: done('think', { kind: 'failed', failure: overflow }),
    given: { answer: asking },
    to: 'compacting',
    expected: { overflowed: true, answer: asking, usage: { ...noUsage, model_calls: 1 } },
  },
  {
    says: 'a second refusal after the compaction of this turn ends it',
    from: 'thinking',
    event: done('think', { kind: 'failed', failure: overflow }),
    given: { usage: turn, compactedFor: 2 },
    to: 'failed',
    expected: {
      failure: {
        code: 'model_failed',
        message: expect.stringContaining("longer than the model's context, also after"),
        facts: { kind: 'context_overflow', compacted: true, context_window: 1_000 },
      },
    },
  },
  {
    says: 'a conversation that was compacted for the turn before may be compacted again',
    from: 'thinking',
    event: done('think', { kind: 'failed', failure: overflow }),
    given: { usage: turn, compactedFor: 1 },
    to: 'compacting',
  },
  {
    says: 'a compacted conversation goes to the model; the cost of the summary is counted, but no turn',
    from: 'compacting',
    event: done('compact', compacted()),
    given: {
      usage: { ...turn, cost_usd: 0.1 },
      overflowed: true,
      conversationTokens: 900,
      modelTries: 1,
    },
    to: 'thinking',
    target: 'considering',
    expected: {
      usage: {
        turns: 1,
        model_calls: 2,
        tool_calls: 0,
        input_tokens: 20,
        output_tokens: 10,
        cached_tokens: 4,
        cost_usd: 0.35,
      },
      overflowed: false,
      conversationTokens: 0,
      compactedFor: 2,
      modelTries: 0,
    },
  },
  {
    says: 'a temporary failure of the summary leads to a retry after a pause',
    from: 'compacting',
    event: done('compact', { kind: 'failed', failure, spent: spent({ toolCalls: 0 }) }),
    given: { deadlineAt: at + 60_000, conversationTokens: 900 },
    to: 'pausing',
    expected: {
      modelTries: 1,
      limitAt: at + 60_000,
      conversationTokens: 900,
      usage: { turns: 0, model_calls: 1 },
    },
  },
  {
    says: 'a lasting failure of the summary ends it',
    from: 'compacting',
    event: done('compact', { kind: 'failed', failure: overflow, spent: spent() }),
    to: 'failed',
    expected: { failure: overflow, usage: { model_calls: 1 } },
  },
  {
    says: 'a compaction that broke ends it',
    from: 'compacting',
    event: broken('compact'),
    to: 'failed',
    expected: why('internal'),
  },
  {
    says: 'after the pause the summary is requested again',
    from: 'pausing',
    event: late,
    given: { limitAt: at + 60_000, conversationTokens: 800 },
    to: 'compacting',
    expected: { deadlineAt: at + 60_000, limitAt: null },
  },
  {
    says: 'after the pause it thinks again, with the rest of its time',
    from: 'pausing',
    event: late,
    given: { limitAt: at + 60_000, modelTries: 1 },
    to: 'thinking',
    expected: { deadlineAt: at + 60_000, limitAt: null, modelTries: 1 },
  },
  {
    says: 'a pause beyond the time limit ends it',
    from: 'pausing',
    event: late,
    given: { limitAt: at },
    to: 'failed',
    expected: why('timed_out'),
  },
  {
    says: 'a model that failed too often ends it with its failure',
    from: 'thinking',
    event: done('think', { kind: 'failed', failure }),
    given: { modelTries: 2 },
    to: 'failed',
    expected: { failure, usage: { ...noUsage, model_calls: 1 } },
  },
  {
    says: 'an answer that was cut is never success: the model gets a note',
    from: 'thinking',
    event: done('think', thought('truncated', ['bash'])),
    given: { nudges: 1 },
    to: 'thinking',
    target: 'considering',
    expected: { cuts: 1, nudges: 1, usage: turn },
  },
  {
    says: 'the third answer in a row that was cut ends it',
    from: 'thinking',
    event: done('think', thought('truncated')),
    given: { cuts: 2 },
    to: 'failed',
    expected: { ...why('output_truncated'), usage: turn },
  },
  {
    says: 'a whole answer resets the count of cut ones',
    from: 'thinking',
    event: done('think', thought('answer')),
    given: { cuts: 2 },
    to: 'thinking',
    target: 'considering',
    expected: { cuts: 0, nudges: 1 },
  },
  {
    says: 'after an answer without a call the model gets a reminder',
    from: 'thinking',
    event: done('think', thought('answer')),
    to: 'thinking',
    target: 'considering',
    expected: { nudges: 1, usage: turn },
  },
  {
    says: 'an answer without a call too often ends it',
    from: 'thinking',
    event: done('think', thought('answer')),
    given: { nudges: 1 },
    to: 'failed',
    expected: why('model_failed'),
  },
  {
    says: 'a model call that broke ends it',
    from: 'thinking',
    event: broken('think'),
    to: 'failed',
    expected: why('internal'),
  },
  {
    says: 'results lead to the next turn',
    from: 'acting',
    event: done('act', acted(null)),
    given: { nudges: 1, cuts: 1 },
    to: 'thinking',
    target: 'considering',
    expected: { nudges: 0, cuts: 0, usage: { ...noUsage, tool_calls: 2 } },
  },
  {
    says: 'what a person says at a tool call waits for the next turn',
    from: 'acting',
    event: tell('in German'),
    given: { unread: ['be short'] },
    to: 'acting',
    expected: { unread: ['be short', 'in German'] },
  },
  {
    says: 'more than an agent can be told is not taken',
    from: 'acting',
    event: tell('x'.repeat(60_000)),
    given: { unread: ['y'.repeat(10_000)] },
    to: 'acting',
    expected: { unread: ['y'.repeat(10_000)] },
  },
  {
    says: 'the next turn begins with what a person said',
    from: 'acting',
    event: done('act', acted(null)),
    given: { unread: ['be short'] },
    to: 'thinking',
    target: 'considering',
    expected: { unread: undefined, told: ['be short'] },
  },
  {
    says: 'what is said during a model call waits for the turn after it',
    from: 'thinking',
    event: done('think', thought('calls', ['read'])),
    given: { told: ['be short'], unread: ['in German'] },
    to: 'acting',
    expected: { told: undefined, unread: ['in German'] },
  },
  {
    says: 'a model call that is repeated says the same, without what came meanwhile',
    from: 'thinking',
    event: done('think', { kind: 'failed', failure: overflow }),
    given: { told: ['be short'], unread: ['in German'] },
    to: 'compacting',
    expected: { told: ['be short'], unread: ['in German'] },
  },
  {
    says: 'a turn that may have been requested before takes nothing new',
    from: 'compacting',
    event: done('compact', compacted()),
    given: { overflowed: true, unread: ['in German'] },
    to: 'thinking',
    target: 'considering',
    expected: { unread: ['in German'] },
  },
  {
    says: 'an agent that ends before it read what a person said goes on',
    from: 'acting',
    event: done('act', acted('done')),
    given: { unread: ['in German'], usage: turn },
    to: 'preparing',
    expected: { finish: null, failure: null, unread: ['in German'], wentOn: 1 },
  },
  {
    says: 'without a turn left its work counts as it is',
    from: 'acting',
    event: done('act', acted('done')),
    given: { unread: ['in German'], usage: { ...turn, turns: 3 } },
    to: 'done',
    expected: { finish: { summary: 'so it is' }, unread: ['in German'] },
  },
  {
    says: 'an assistant that ends before it read what a person said goes on',
    from: 'delegating',
    event: done('delegate', delegated()),
    given: { unread: ['in German'], told: ['be short'], backend: 'codex' },
    to: 'preparing',
    expected: { finish: null, unread: ['in German'], told: undefined, wentOn: 1 },
  },
  {
    says: 'finish ends it as done',
    from: 'acting',
    event: done('act', acted('done')),
    to: 'done',
    expected: { failure: null, finish: { summary: 'so it is' } },
  },
  {
    says: "finish with failed ends it with the agent's reason",
    from: 'acting',
    event: done('act', acted('failed')),
    to: 'failed',
    expected: {
      failure: {
        code: 'model_failed',
        message: 'the agent gave up: so it is',
        facts: { gave_up: true },
        retryable: false,
      },
    },
  },
  {
    says: 'a call that needs approval waits for a person',
    from: 'thinking',
    event: done('think', thought('calls', ['read', 'bash'])),
    given: { deadlineAt: at + 7_000 },
    to: 'awaitingApproval',
    expected: {
      usage: turn,
      question: {
        inputId: 'approval-1',
        kind: 'approval',
        calls: [{ tool: 'bash' }],
        fallback: null,
      },
      remainingMs: 7_000,
      deadlineAt: at + 1_000,
    },
  },
  {
    says: 'after the approval it waits for a slot',
    from: 'awaitingApproval',
    event: respond('approval-1', null, 'allow'),
    given: asked('approval', 'approval-1'),
    to: 'returning',
    expected: { ...waitsForSlot('acting'), answer: { text: null, allowed: true } },
  },
  {
    says: 'an approval that never comes ends it',
    from: 'awaitingApproval',
    event: late,
    given: asked('approval', 'approval-1'),
    to: 'failed',
    expected: why('timed_out'),
  },
  {
    says: 'calls that nobody approves are denied, where that is the default decision',
    from: 'awaitingApproval',
    event: late,
    given: asked('approval', 'approval-1', 'deny'),
    to: 'returning',
    expected: { ...waitsForSlot('acting'), answer: { from: 'nobody', text: null, allowed: false } },
  },
  {
    says: 'a question that nobody answers gets the default answer',
    from: 'awaitingInput',
    event: late,
    given: asked('input', 'input-1', 'as you like'),
    to: 'returning',
    expected: {
      ...waitsForSlot('considering'),
      answer: { from: 'nobody', text: 'as you like', allowed: true },
    },
  },
  ...(
    [
      ['awaitingInput', asked('input', 'input-1', 'as you like'), 'considering', 'as you like'],
      ['awaitingApproval', asked('approval', 'approval-1', 'deny'), 'acting', null],
    ] as const
  ).map(([resumeAt, given, goesOnAt, text]) => ({
    says: `the wait ${resumeAt} of an earlier process that is over is ended like one of this process`,
    from: 'preparing',
    event: late,
    given: { ...given, resumeAt },
    to: 'preparing',
    expected: {
      ...waitsForSlot(goesOnAt),
      resumeAt: 'returning',
      answer: { from: 'nobody', text },
    },
  })),
  ...(['awaitingInput', 'awaitingApproval', 'awaitingDecision'] as const).map((resumeAt) => ({
    says: `the wait ${resumeAt} of an earlier process that is over and has no answer ends the attempt by name`,
    from: 'preparing',
    event: late,
    given: { ...asked('input', 'input-1'), resumeAt },
    to: 'failed',
    expected: { failure: { code: 'timed_out', message: 'nobody answered within 1 s' } },
  })),
  {
    says: 'an expired wait for a slot of an earlier process ends the attempt',
    from: 'preparing',
    event: late,
    given: { resumeAt: 'returning' },
    to: 'failed',
    expected: {
      failure: { code: 'timed_out', message: 'no slot became free within 24 h after the answer' },
    },
  },
  {
    says: 'a question waits for a person',
    from: 'acting',
    event: done('act', acted(null, 1, 'which one?')),
    given: { usage: turn, limits: { ...limits, defaultAnswer: 'as you like' } },
    to: 'awaitingInput',
    expected: {
      question: { inputId: 'input-1', kind: 'input', text: 'which one?', fallback: 'as you like' },
      deadlineAt: at + 1_000,
    },
  },
  {
    says: 'a question waits without limit when none is set',
    from: 'acting',
    event: done('act', acted(null, 1, 'which one?')),
    given: { deadlineAt: at + 7_000, limits: { ...limits, answerMs: 0 } },
    to: 'awaitingInput',
    expected: { remainingMs: 7_000, deadlineAt: null },
  },
  {
    says: 'the answer waits for a slot',
    from: 'awaitingInput',
    event: respond('input-1', 'the second'),
    given: asked('input', 'input-1'),
    to: 'returning',
    expected: { ...waitsForSlot('considering'), answer: { text: 'the second', allowed: true } },
  },
  ...(['acting', 'delegating', 'considering'] as const).map((goesOnAt) => ({
    says: `with a slot it goes on at ${goesOnAt}, and so does the clock`,
    from: 'returning',
    event: done('regain'),
    given: { goesOnAt, remainingMs: 5_000 },
    to: goesOnAt === 'considering' ? 'thinking' : goesOnAt,
    target: goesOnAt,
    expected: { goesOnAt: null, deadlineAt: at + 5_000 },
  })),
  {
    says: 'no slot became free in a day',
    from: 'returning',
    event: late,
    to: 'failed',
    expected: {
      failure: { code: 'timed_out', message: 'no slot became free within 24 h after the answer' },
    },
  },
  {
    says: 'a failed request for the slot ends it',
    from: 'returning',
    event: broken('regain'),
    to: 'failed',
    expected: why('internal'),
  },
  ...(['awaitingInput', 'awaitingApproval', 'awaitingDecision'] as const).flatMap((from) => [
    { says: 'a slot that is lent changes nothing', from, event: done('lend'), to: from },
    {
      says: 'a slot that cannot be lent ends it',
      from,
      event: broken('lend'),
      to: 'failed',
      expected: why('internal'),
    },
  ]),
  {
    says: 'an answer that never comes ends it',
    from: 'awaitingInput',
    event: late,
    given: asked('input', 'input-1'),
    to: 'failed',
    expected: { failure: { code: 'timed_out', message: 'nobody answered within 1 s' } },
  },
  {
    says: 'tool calls that broke end it',
    from: 'acting',
    event: broken('act'),
    to: 'failed',
    expected: why('tool_failed'),
  },
  ...['preparing', 'thinking', 'compacting', 'acting', 'delegating'].map((from) => ({
    says: 'the wall limit ends it',
    from,
    event: { type: 'DEADLINE', at },
    to: 'failed',
    expected: why('timed_out'),
  })),
];

describe('edges', () => {
  test.each(rows)('$from: $says', ({ from, event, given, to, expected }) => {
    const next = step(agentMachine, from, { ...fresh, ...given }, event);

    expect(pathOf(next)).toBe(to);
    expect(next.context).toMatchObject(expected ?? {});
  });

  test('every edge of the chart has a case', () => {
    const exercised = new Set(rows.map((row) => edgeOf(agentMachine, row)));

    expect(edgesOf(agentMachine).filter((edge) => !exercised.has(edge))).toEqual([]);
  });
});

test.each([
  ['the last turn', { usage: { ...noUsage, turns: 2, cost_usd: 0 } }, 'thinking', null],
  ['no turn left', { usage: { ...noUsage, turns: 3 } }, 'failed', 'budget_exceeded'],
  [
    'one token left',
    { usage: { ...noUsage, input_tokens: 90, output_tokens: 9 } },
    'thinking',
    null,
  ],
  ['a little money left', { usage: { ...noUsage, turns: 1, cost_usd: 0.49 } }, 'thinking', null],
  [
    'no money left',
    { usage: { ...noUsage, turns: 1, cost_usd: 0.5 } },
    'failed',
    'budget_exceeded',
  ],
  ['a cost that is not known', { usage: { ...noUsage, turns: 1 } }, 'failed', 'budget_exceeded'],
  [
    'no limit of cost',
    { usage: { ...noUsage, turns: 1 }, limits: { ...limits, maxCostUsd: null } },
    'thinking',
    null,
  ],
  [
    'no token left',
    { usage: { ...noUsage, input_tokens: 90, output_tokens: 10 } },
    'failed',
    'budget_exceeded',
  ],
  [
    'no limit of tokens',
    { usage: { ...noUsage, input_tokens: 999 }, limits: { ...limits, maxTokensTotal: null } },
    'thinking',
    null,
  ],
])('with %s the agent continues or ends', (_, given, to, code) => {
  const next = step(agentMachine, 'acting', { ...fresh, ...given }, done('act', acted(null)));

  expect(pathOf(next)).toBe(to);
  expect(next.context.failure?.code ?? null).toBe(code);
});

test.each([
  [2, 'thinking'],
  [3, 'failed'],
])('the same call %d times in a row leads to %s', (repeats, to) => {
  const next = step(
    agentMachine,
    'acting',
    { ...fresh, calls: callsOf('find') },
    done('act', acted(null, repeats)),
  );

  expect(pathOf(next)).toBe(to);
  expect(next.context.failure?.code ?? null).toBe(to === 'failed' ? 'loop_detected' : null);
});

test.each([
  ['just below four fifths of the window', { conversationTokens: 799 }, 'thinking', null],
  ['four fifths of the window filled', { conversationTokens: 800 }, 'compacting', null],
  [
    'a window that is not known',
    { conversationTokens: 9e9, limits: { ...limits, contextWindow: null } },
    'thinking',
    null,
  ],
  [
    'the window filled again a turn after',
    { conversationTokens: 800, usage: turn, compactedFor: 1 },
    'failed',
    'model_failed',
  ],
  [
    'the window filled again two turns after',
    { conversationTokens: 800, usage: { ...turn, turns: 2 }, compactedFor: 1 },
    'compacting',
    null,
  ],
])('with %s the agent thinks, compacts or ends', (_, given, to, code) => {
  const next = step(agentMachine, 'acting', { ...fresh, ...given }, done('act', acted(null)));

  expect(pathOf(next)).toBe(to);
  expect(next.context.failure?.code ?? null).toBe(code);
});

test('three turns with only malformed calls end the attempt with the last problem; a good call resets the count', () => {
  const end = (before: object, malformed: string | null) =>
    step(
      agentMachine,
      'acting',
      { ...fresh, ...before },
      done('act', { ...acted(null), malformed }),
    );
  const second = end({ strikes: 1 }, 'no such tool');

  expect([pathOf(second), second.context.strikes]).toEqual(['thinking', 2]);
  expect(end(second.context, 'not JSON').context).toMatchObject({
    failure: {
      code: 'model_failed',
      message: expect.stringMatching(/malformed tool calls in 3 turns in a row: not JSON/),
      facts: { kind: 'malformed_calls', problem: 'not JSON' },
    },
  });
  expect(end(second.context, null).context).toMatchObject({
    strikes: 0,
    problem: null,
    failure: null,
  });
});

test('the compaction gets its turn and the size of the context window', () => {
  const compacting = step(
    agentMachine,
    'acting',
    { ...fresh, conversationTokens: 900 },
    done('act', acted(null)),
  );

  expect(compacting.children['compact']?.getSnapshot().input).toMatchObject({
    turn: 1,
    contextWindow: 1_000,
  });
});

test.each([
  ['its last turn', { modelCalls: 3 }, {}, 'delegating'],
  ['a cost that is not known yet', { costUsd: null }, {}, 'delegating'],
  ['one token left', { inputTokens: 94 }, {}, 'delegating'],
  ['no limit of tokens', { inputTokens: 999 }, { maxTokensTotal: null }, 'delegating'],
  ['no limit of cost', { costUsd: 9 }, { maxCostUsd: null }, 'delegating'],
  ['no token left', { inputTokens: 95 }, {}, 'failed'],
])('with %s an assistant continues or is ended', (_, spending, own, to) => {
  const next = step(
    agentMachine,
    'delegating',
    { ...fresh, limits: { ...limits, ...own } },
    reports(spending),
  );

  expect(pathOf(next)).toBe(to);
});

test('an assistant gets the rest of the budget', () => {
  const of = (usage: object, maxCostUsd: number | null) =>
    step(
      agentMachine,
      'preparing',
      {
        ...fresh,
        ...inTime,
        backend: 'claude',
        usage: { ...noUsage, ...usage },
        limits: { ...limits, maxCostUsd },
      },
      done('prepare', ready),
    ).children['delegate']?.getSnapshot().input.moneyLeftUsd;

  expect([of({}, 0.5), of({ cost_usd: 0.2 }, 0.5), of({}, null)]).toEqual([0.5, 0.3, null]);
});

test.each(['awaitingInput', 'awaitingApproval', 'awaitingDecision', 'preparing'])(
  'a wait without limit never expires: %s',
  (from) => {
    const wait = {
      ...asked('input', 'input-1', 'as you like'),
      deadlineAt: null,
      resumeAt: 'awaitingInput',
    };

    const next = step(
      agentMachine,
      from,
      { ...fresh, ...wait },
      Object.assign({}, late, { at: at + 10 ** 12 }),
    );

    expect(pathOf(next)).toBe(from);
    expect(next.context).toMatchObject({ failure: null, answer: null });
  },
);

test('missing work is known from the preparation of an attempt, and stays known', () => {
  const conflict = { taskId: 'bd-a2' as TaskId, branch: 'agent/bd-a2/1', files: ['a.txt'] };
  const prepared = (conflicts: readonly object[]) =>
    done('prepare', { question: null, failure: null, conflicts });

  const found = step(agentMachine, 'preparing', fresh, prepared([conflict]));
  const late = step(
    agentMachine,
    'preparing',
    { ...fresh, conflicts: [conflict] },
    broken('prepare'),
  );
  const none = step(agentMachine, 'preparing', fresh, prepared([]));

  expect([found.context.conflicts, late.context.conflicts]).toEqual([[conflict], [conflict]]);
  // A state of an earlier server without the key is the same.
  expect(JSON.parse(JSON.stringify(none.context))).not.toHaveProperty('conflicts');
});

test('the time limit does not end the attempt a millisecond early', () => {
  const next = step(agentMachine, 'thinking', fresh, { type: 'DEADLINE', at: at - 1 } as never);

  expect(pathOf(next)).toBe('thinking');
});

test('the output of the machine is the outcome of the attempt', () => {
  const well = step(agentMachine, 'acting', fresh, done('act', acted('done')));
  const badly = step(
    agentMachine,
    'thinking',
    { ...fresh, modelTries: 2 },
    done('think', { kind: 'failed', failure }),
  );

  expect(well.output).toEqual({
    status: 'done',
    summary: 'so it is',
    artifacts: ['a.txt'],
    usage: { ...noUsage, tool_calls: 2 },
  });
  expect(badly.output).toEqual({
    status: 'failed',
    failure,
    usage: { ...noUsage, model_calls: 1 },
  });
});

test.each([
  ['another question', 'awaitingInput', asked('input', 'input-2'), respond('input-1', 'yes')],
  [
    'a question in words by a decision alone',
    'awaitingInput',
    asked('input', 'input-1'),
    respond('input-1', null, 'allow'),
  ],
  [
    'a request for leave by words alone',
    'awaitingApproval',
    asked('approval', 'approval-1'),
    respond('approval-1', 'well'),
  ],
  ['an agent that asked nothing', 'thinking', {}, respond('input-1', 'yes')],
])('an answer to %s changes nothing', (_, from, given, event) => {
  expect(pathOf(step(agentMachine, from, { ...fresh, ...given }, event as never))).toBe(from);
});

test('a denial reaches the calls that needed approval, once', () => {
  const returning = step(
    agentMachine,
    'awaitingApproval',
    { ...fresh, ...asked('approval', 'approval-1') },
    respond('approval-1', 'use the script', 'deny') as never,
  );

  const acting = step(agentMachine, 'returning', returning.context, done('regain'));
  expect(acting.children['act']?.getSnapshot().input).toMatchObject({
    denied: { tools: ['bash'], why: 'a person did not allow this call: use the script' },
  });
  expect(
    step(agentMachine, 'acting', acting.context, done('act', acted(null))).context.answer,
  ).toBeNull();
});

test.each([
  ['thinking', {}, 'the 12 s limit was reached'],
  [
    'thinking',
    { modelTries: 4, modelFault: '500 boom' },
    'the 12 s limit was reached while retrying the provider: 500 boom, 4 times',
  ],
  [
    'pausing',
    { modelTries: 1, modelFault: '500 boom' },
    'the 12 s limit was reached while retrying the provider: 500 boom, once',
  ],
  [
    'acting',
    { calls: callsOf('bash', 'bash') },
    'the 12 s limit was reached while bash was running',
  ],
])('an attempt out of time in %s says what it did: %j', (state, over, message) => {
  const context = { ...fresh, limits: { ...limits, wallMs: 12_000 }, ...over };

  const next = step(agentMachine, state, { ...context, deadlineAt: at }, late);

  expect(next.context.failure).toMatchObject({ code: 'timed_out', message });
});
