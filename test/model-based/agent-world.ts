import assert from 'node:assert/strict';
import { createActor, type EventObject, type SnapshotFrom } from 'xstate';
import type {
  Acted,
  AgentInput,
  Question,
  Resume,
  Spent,
  Thought,
} from '../../src/machines/agent/agent-context.ts';
import { longestSlotWaitMs } from '../../src/machines/agent/agent-failures.ts';
import { agentMachine } from '../../src/machines/agent/agent-machine.ts';
import { longestModelPauseMs } from '../../src/machines/agent/agent-rules.ts';
import type { Failure, TaskId } from '../../src/machines/task.ts';
import { at, broken, done } from '../machines/chart.ts';
import type { Move, Start, World } from './world.ts';

type Snapshot = SnapshotFrom<typeof agentMachine>;

const limits = {
  maxTurns: 2,
  maxTokensTotal: 100,
  maxCostUsd: 1,
  deadlineAt: at + 100_000,
  answerMs: 1_000,
  defaultAnswer: null,
  defaultDecision: null,
  maxRepeats: 2,
  maxNudges: 1,
  maxModelRetries: 1,
  maxStrikes: 2,
  contextWindow: 50,
  approvals: ['bash'],
};
const input: AgentInput = {
  taskId: 'bd-a' as TaskId,
  attempt: 1,
  role: 'engineer',
  options: {},
  limits,
};

const failure = (retryable: boolean, facts: Failure['facts'] = {}): Failure => ({
  code: 'model_failed',
  message: 'x',
  facts,
  retryable,
});
const thought = (
  kind: 'calls' | 'answer' | 'truncated',
  tool: string | null = null,
  spent: object = {},
): Thought => ({
  kind,
  calls: tool === null ? [] : [{ call_id: 'call', tool, arguments: '{}' }],
  inputTokens: 1,
  outputTokens: 1,
  cachedTokens: 0,
  costUsd: 0.01,
  ...spent,
});
const acted = (more: Partial<Acted>): Acted => ({
  calls: 1,
  finish: null,
  question: null,
  repeats: 1,
  malformed: null,
  ...more,
});
const finish = (status: 'done' | 'failed') => ({
  finish: { status, summary: 'so', artifacts: [] },
});

const spent: Spent = {
  modelCalls: 1,
  toolCalls: 0,
  inputTokens: 1,
  outputTokens: 1,
  cachedTokens: 0,
  costUsd: 0.01,
};
const dear: Spent = { ...spent, costUsd: 9 };
/** What an assistant says while it works: little, and too much of each. */
const reports = ({ value }: Snapshot): readonly EventObject[] =>
  value !== 'delegating'
    ? [Object.assign({ type: 'assistant.ended' }, { at })]
    : [
        spent,
        { ...spent, modelCalls: 9 },
        { ...spent, inputTokens: limits.maxTokensTotal },
        dear,
      ].map(
        (each): EventObject => Object.assign({ type: 'assistant.reported', at }, { spent: each }),
      );

const answers: Readonly<Record<string, readonly [id: string, outputs: readonly unknown[]]>> = {
  preparing: [
    'prepare',
    [
      { question: null, failure: null },
      { question: 'what now?', failure: null },
      { question: null, failure: failure(false) },
      { question: null, failure: null, cut: dear },
    ],
  ],
  compacting: [
    'compact',
    [
      { kind: 'compacted', spent },
      { kind: 'failed', failure: failure(true), spent },
      { kind: 'failed', failure: failure(false, { kind: 'insufficient_quota' }), spent },
      { kind: 'failed', failure: failure(false), spent },
      { kind: 'failed', failure: failure(true), spent: dear },
    ],
  ],
  thinking: [
    'think',
    [
      thought('calls', 'read', { inputTokens: limits.contextWindow * 0.8 }),
      { kind: 'failed', failure: failure(false, { kind: 'context_overflow' }) },
      thought('calls', 'read'),
      thought('calls', 'bash'),
      thought('calls', 'read', { inputTokens: limits.maxTokensTotal }),
      thought('calls', 'read', { costUsd: null }),
      thought('answer'),
      thought('truncated'),
      { kind: 'failed', failure: failure(true) },
      { kind: 'failed', failure: failure(true, { retry_after_ms: 2 * longestModelPauseMs }) },
      { kind: 'failed', failure: failure(false) },
      { kind: 'failed', failure: failure(true), spent: dear },
    ],
  ],
  acting: [
    'act',
    [
      acted({}),
      acted(finish('done')),
      acted(finish('failed')),
      acted({ question: 'red or blue?' }),
      acted({ repeats: limits.maxRepeats }),
      acted({ malformed: 'no such tool' }),
    ],
  ],
  returning: ['regain', [undefined]],
  awaitingInput: ['lend', [undefined]],
  awaitingApproval: ['lend', [undefined]],
  awaitingDecision: ['lend', [undefined]],
  delegating: [
    'delegate',
    [
      { kind: 'done', summary: 'so', artifacts: [], spent },
      {
        kind: 'asks',
        questionId: 'q1',
        call: { call_id: 'c1', tool: 'edit', arguments: '{}' },
        spent,
      },
      ...[{ modelCalls: 9 }, { inputTokens: limits.maxTokensTotal }, { costUsd: 9 }].map(
        (more) => ({
          kind: 'asks',
          questionId: 'q2',
          call: { call_id: 'c2', tool: 'bash', arguments: '{}' },
          spent: { ...spent, ...more },
        }),
      ),
      { kind: 'failed', failure: failure(false), spent },
      { kind: 'failed', failure: failure(true, { kind: 'usage_limit' }), spent },
    ],
  ],
};

const endings = ({ value, context }: Snapshot): readonly EventObject[] => {
  const [id, outputs] = answers[String(value)] ?? ['', []];
  if (id === '') return [];
  const late = {
    ...done(id, outputs[0]),
    comes: 'too late',
    at: context.deadlineAt ?? never,
  } as EventObject;
  return [
    ...outputs.map((output) => done(id, output)),
    broken(id),
    ...(id === 'prepare' ? [late] : []),
  ];
};

/** No limit is as late. */
const never = at + 10 ** 12;

/** Too early, on time, and when the time of the whole attempt is over. */
const deadlines = ({ context: { deadlineAt, limitAt } }: Snapshot): readonly EventObject[] =>
  Object.entries({
    early: (deadlineAt ?? never) - 1,
    punctual: deadlineAt ?? never,
    last: limitAt ?? deadlineAt ?? never,
  }).map(([comes, time]): EventObject => Object.assign({ type: 'DEADLINE' }, { comes, at: time }));

const responses = ({ context: { question } }: Snapshot): readonly EventObject[] =>
  [
    { inputId: 'right', text: 'x', decision: 'allow' },
    { inputId: 'right', text: 'x', decision: 'deny' },
    { inputId: 'right', text: null, decision: question?.kind === 'input' ? 'allow' : null },
    { inputId: 'wrong', text: 'x', decision: 'allow' },
  ].map(
    ({ inputId, ...said }): EventObject =>
      Object.assign(
        { type: 'respond', asks: inputId },
        { ...said, inputId: inputId === 'right' ? (question?.inputId ?? 'none') : inputId, at },
      ),
  );

/** What a person says, once: the agent has not read it yet. */
const tells = ({ context: { unread } }: Snapshot): readonly EventObject[] =>
  unread === undefined ? [Object.assign({ type: 'tell' }, { text: 'be short', at })] : [];

const fresh = createActor(agentMachine, { input }).getSnapshot().context;
const asked = (kind: Question['kind'], fallback: string | null = null) => ({
  question: { inputId: 'input-0', kind, text: '?', calls: [], fallback },
  deadlineAt: at + limits.answerMs,
  remainingMs: limits.deadlineAt - at,
});
const resume = (where: Resume['at'], more: object = {}): Start => ({
  says: `an earlier process left it ${where}`,
  input: { ...input, resume: { at: where, context: { ...fresh, ...more } } },
});

// Its moves are many, and expect takes most of the time of a move.
const judgeEnd = ({ before, event, after: { value, context } }: Move<Snapshot>): void => {
  if (value === 'done' && context.backend === 'builtin')
    assert.equal(context.finish?.status, 'done', 'who is done has called finish');
  assert.equal(context.failure !== null, value === 'failed', 'what failed says why');
  if (value === 'failed' && event.type === 'DEADLINE')
    assert.equal(context.failure?.code, 'timed_out');
  assert.equal(before.status, 'active', 'an end is final');
};

/** How long the present state may last. */
const timeLeft = ({ deadlineAt }: Snapshot['context'], now: number): number =>
  (deadlineAt ?? never) - now;

const judgeClock = ({ before, event, after: { value, context, tags } }: Move<Snapshot>): void => {
  const now = 'at' in event ? Number(event['at']) : at;
  if (tags.has('awaiting')) {
    assert.notEqual(context.question, null, 'who waits for a person has asked something');
    assert.equal(
      timeLeft(context, at),
      context.limits.answerMs === 0 ? never - at : context.limits.answerMs,
      'the wait has its own limit, or none',
    );
  } else if (value === 'returning') {
    // The wait is judged where it begins.
    if (before.tags.has('awaiting'))
      assert.equal(
        timeLeft(context, now),
        longestSlotWaitMs,
        'the wait for a slot has its own limit',
      );
  } else if (value === 'pausing') {
    assert.equal(context.limitAt, limits.deadlineAt, 'a pause does not move the limit');
    assert.ok(timeLeft(context, 0) <= limits.deadlineAt, 'a pause ends before the attempt');
  } else if (value !== 'preparing' && before.value !== 'preparing' && !tags.has('ended'))
    assert.equal(
      context.deadlineAt,
      limits.deadlineAt,
      'neither a wait nor a pause costs or gives time',
    );
};

const judge = (move: Move<Snapshot>): void => {
  const { before, event, after } = move;
  const [was, { usage, nudges, cuts, modelTries, strikes }] = [before.context, after.context];
  const called = event.type === 'xstate.done.actor.think' ? 1 : 0;
  const summarised = event.type === 'xstate.done.actor.compact' ? 1 : 0;
  // A call that an earlier process began, and that its end cut off.
  const cut = JSON.stringify(event).includes('"cut":{') ? 1 : 0;
  if (before.value !== 'delegating') {
    assert.equal(
      usage.model_calls - was.usage.model_calls,
      called + summarised + cut,
      'each call of the model is counted once',
    );
    assert.ok(usage.turns - was.usage.turns <= called, 'a turn is a call of the model');
  }
  if (before.value !== 'delegating' || after.value === 'delegating')
    assert.ok(usage.turns <= limits.maxTurns, 'no more turns than allowed');
  assert.ok(nudges <= limits.maxNudges, 'reminders are bounded');
  assert.ok(modelTries <= limits.maxModelRetries, 'tries of a call are bounded');
  assert.ok(strikes <= limits.maxStrikes, 'bad calls are bounded');
  assert.ok(cuts < limits.maxStrikes, 'cut answers in a row');
  if (after.value === 'compacting')
    assert.notEqual(
      after.context.compactedFor,
      usage.turns + 1,
      'a conversation is compacted once for a turn',
    );
  if (after.value === 'thinking')
    assert.equal(after.context.overflowed, false, 'what is known to be too long is not asked');
  if (event.type !== 'tell' && was.unread !== undefined && after.context.unread === undefined)
    assert.deepEqual(after.context.told, was.unread, 'what a person said is read once');
  if (after.value === 'preparing' && before.value !== 'preparing')
    assert.ok(usage.turns < limits.maxTurns, 'who goes on to read has a turn left');
  if (before.value === 'thinking' && after.value === 'acting')
    assert.ok(
      after.context.calls.every(({ tool }) => tool !== 'bash'),
      'a call that needs leave is made with leave only',
    );
  judgeEnd(move);
  judgeClock(move);
};

const usual: readonly Start[] = [
  { says: 'the beginning', input },
  resume('thinking'),
  resume('compacting', { overflowed: true }),
  resume('acting', { calls: [{ call_id: 'call', tool: 'read', arguments: '{}' }] }),
  resume('awaitingInput', asked('input')),
  resume('awaitingApproval', asked('approval')),
  resume('awaitingDecision', asked('input')),
  resume('awaitingDecision', { ...asked('input'), backend: 'codex' }),
  resume('returning', {
    goesOnAt: 'considering',
    remainingMs: limits.deadlineAt - at,
    deadlineAt: at + longestSlotWaitMs,
  }),
  { says: 'an assistant does the work', input: { ...input, backend: 'codex' } },
  resume('delegating', { backend: 'codex' }),
];

/** No limit of time for a person. */
const patient = { limits: { ...limits, answerMs: 0 }, deadlineAt: null };
const unlimited: readonly Start[] = [
  resume('awaitingInput', { ...asked('input'), ...patient }),
  resume('awaitingDecision', { ...asked('input'), ...patient }),
];

/** What counts when nobody answers. */
const unanswered: readonly Start[] = [
  resume('awaitingInput', asked('input', 'go on')),
  resume('awaitingApproval', asked('approval', 'deny')),
];

const textOf = (event: EventObject): string => JSON.stringify(event);
/**
 * What leads to a summary, a strike or an answer that is cut; and what has nothing to do with any
 * of them.
 */
const isRare = (event: EventObject): boolean =>
  /"tell"|context_overflow|"malformed":"|"inputTokens":40|actor\.compact"|"truncated"/.test(
    textOf(event),
  );
const isBesides = (event: EventObject): boolean =>
  /"tell"|"bash"|red or blue|what now|"answer"|retry_after_ms|"comes":"(early|late)"|"repeats":2|"costUsd":null/.test(
    textOf(event),
  );
const isCut = (event: EventObject): boolean => textOf(event).includes('"truncated"');
const isNeither = (event: EventObject): boolean => isRare(event) || isBesides(event);

/**
 * Together they would be too many paths to walk: each tour leaves out the half of what may happen.
 */
const tours: readonly Start[] = [
  ...usual
    .filter(({ says }) => !says.includes('compacting'))
    .map((start) => ({ ...start, without: isRare })),
  ...unanswered.map((start) => ({ ...start, without: isNeither })),
  { says: 'answers are cut', input, without: (event) => isNeither(event) && !isCut(event) },
  {
    says: 'a conversation grows too long',
    input,
    without: (event) => isBesides(event) || isCut(event),
  },
  {
    ...resume('compacting', { overflowed: true }),
    without: (event) => isBesides(event) || isCut(event),
  },
];

/** One attempt of two turns, with every answer of the model, the tools, a person and the clock. */
export const agentWorld: World<Snapshot, null> = {
  machine: agentMachine,
  starts: [...usual, ...unanswered, ...unlimited],
  tours,
  events: (snapshot) =>
    snapshot.status === 'active'
      ? [endings, reports, deadlines, responses, tells].flatMap((each) => each(snapshot))
      : [],
  keyOf: ({ value, context }) => {
    const { usage, repeats, nudges, modelTries, question, answer, decision, resumeAt } = context;
    const { cuts, strikes, conversationTokens, overflowed, compactedFor } = context;
    return JSON.stringify([
      value,
      context.backend,
      usage.turns,
      usage.input_tokens >= limits.maxTokensTotal,
      usage.cost_usd === undefined,
      repeats,
      nudges,
      cuts,
      modelTries,
      strikes,
      conversationTokens >= limits.contextWindow * 0.8,
      overflowed,
      compactedFor,
      question?.inputId ?? null,
      answer?.allowed ?? null,
      question?.fallback ?? null,
      decision,
      resumeAt,
      context.goesOnAt,
      context.deadlineAt === null,
      context.unread === undefined,
      context.told === undefined,
    ]);
  },
  isRest: ({ status }) => status === 'done',
  sortOf: ({ value }) => String(value),
  begin: null,
  follow: (memory, move) => {
    judge(move);
    return memory;
  },
};
