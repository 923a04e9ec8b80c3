import type { SnapshotFrom } from 'xstate';
import type { AttemptOutcome, TaskId } from '../task.ts';
import { noUsage } from '../task.ts';
import {
  awaitingApproval,
  awaitingDecision,
  awaitingInput,
  lateResumes,
  returning,
} from './agent-awaiting.ts';
import { compacting } from './agent-compacting.ts';
import type { Resume } from './agent-context.ts';
import { delegating } from './agent-delegating.ts';
import { leftUnread, messagesAtStart } from './agent-messages.ts';
import {
  acted,
  actorFailure,
  allowedChanges,
  attemptInput,
  conflictsOfStart,
  cutCall,
  denial,
  fault,
  nudge,
  parksAt,
  prepared,
  prepareFailure,
  preparesFor,
  roundOf,
  spentOnFailure,
  tell,
  thought,
  toolsFailure,
} from './agent-selectors.ts';
import { agentSetup } from './agent-setup.ts';

const goOnAt = (at: NonNullable<Resume['at']>) =>
  ({ guard: { type: 'resumesAt', params: { at } }, target: at, actions: 'forgetResume' }) as const;

/**
 * One attempt of an agent on a task. It thinks (one model call) and acts (its tool calls) in turns
 * until it calls `finish`; it waits for a person when it asks or needs approval; or an assistant
 * program does the work. Limits of turns, tokens, cost and time, and repeated or malformed calls,
 * are guards, so the chart shows why an attempt ended.
 */
export const agentMachine = agentSetup.createMachine({
  id: 'agent',
  context: ({ input }) => ({
    taskId: input?.taskId ?? ('' as TaskId),
    attempt: input?.attempt ?? 0,
    role: input?.role ?? 'engineer',
    backend: input?.backend ?? 'builtin',
    options: input?.options ?? {},
    review: input?.review,
    limits: input?.limits ?? {
      maxTurns: 0,
      maxTokensTotal: null,
      maxCostUsd: null,
      deadlineAt: 0,
      answerMs: 0,
      defaultAnswer: null,
      defaultDecision: null,
      maxRepeats: 0,
      maxNudges: 0,
      maxModelRetries: 0,
      maxStrikes: 0,
      contextWindow: null,
      approvals: [],
    },
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
    remainingMs: 0,
    failure: null,
    deadlineAt: input?.limits.deadlineAt ?? 0,
    ...input?.resume?.context,
    ...messagesAtStart(input?.kept, input?.resume?.context),
    parking: undefined,
    resumeAt: input?.resume?.at ?? null,
  }),
  initial: 'preparing',
  on: {
    DEADLINE: { guard: 'outOfTime', target: '.failed', actions: 'recordTimeLimit' },
    tell: {
      guard: { type: 'hasRoomFor', params: tell },
      actions: { type: 'keepMessage', params: tell },
    },
  },
  states: {
    preparing: {
      tags: 'phase:preparing',
      exit: [
        { type: 'noteConflicts', params: conflictsOfStart },
        { type: 'countCutCall', params: cutCall },
      ],
      meta: {
        says: 'opens the workspace and writes the first message, or restores both after a restart',
      },
      invoke: {
        id: 'prepare',
        src: 'prepare',
        input: ({ context }) => ({
          ...attemptInput({ context }),
          backend: context.backend,
          round: roundOf(context),
          turns: context.usage.turns,
          resumeAt: preparesFor({ context }),
        }),
        onDone: [
          {
            guard: { type: 'mayNotGoOn', params: prepared },
            target: 'failed',
            actions: { type: 'refuseToGoOn', params: prepared },
          },
          {
            guard: { type: 'failsOverMoney', params: cutCall },
            target: 'failed',
            actions: 'recordCostLimit',
          },
          goOnAt('awaitingInput'),
          goOnAt('awaitingApproval'),
          goOnAt('awaitingDecision'),
          goOnAt('returning'),
          { guard: 'outOfTime', target: 'failed', actions: 'recordTimeLimit' },
          {
            guard: { type: 'isUnclear', params: prepared },
            target: 'awaitingDecision',
            actions: [{ type: 'askDecision', params: prepared }, 'stopClock'],
          },
          goOnAt('thinking'),
          goOnAt('compacting'),
          goOnAt('acting'),
          goOnAt('delegating'),
          { target: 'considering' },
        ],
        onError: { target: 'failed', actions: { type: 'recordFailure', params: prepareFailure } },
      },
      on: { DEADLINE: lateResumes },
    },
    considering: {
      meta: { says: 'checks the limits before the next turn' },
      always: [
        { guard: 'outOfTurns', target: 'failed', actions: 'recordTurnLimit' },
        { guard: 'outOfTokens', target: 'failed', actions: 'recordTokenLimit' },
        { guard: 'outOfMoney', target: 'failed', actions: 'recordCostLimit' },
        { guard: 'outOfStrikes', target: 'failed', actions: 'recordMalformedCalls' },
        { guard: 'repeatsItself', target: 'failed', actions: 'recordLoop' },
        { guard: 'isDelegated', target: 'delegating', actions: 'giveMessages' },
        { guard: 'compactedInVain', target: 'failed', actions: 'recordTooLong' },
        { guard: 'isTooLong', target: 'compacting' },
        { target: 'thinking', actions: 'giveMessages' },
      ],
    },
    thinking: {
      tags: ['quiet', 'phase:thinking'],
      meta: { says: 'one call of the language model' },
      invoke: {
        id: 'think',
        src: 'think',
        input: ({ context }) => ({
          ...attemptInput({ context }),
          turn: context.usage.turns + 1,
          maxTurns: context.limits.maxTurns,
          nudge: nudge({ context }),
          answer: context.answer,
          told: context.told ?? [],
        }),
        onDone: [
          {
            guard: { type: 'failsOverMoney', params: spentOnFailure },
            target: 'failed',
            actions: [{ type: 'countThought', params: thought }, 'recordCostLimit'],
          },
          {
            guard: { type: 'mayCompact', params: fault },
            target: 'compacting',
            actions: [{ type: 'countThought', params: thought }, 'noteOverflow'],
          },
          {
            guard: { type: 'overflowed', params: fault },
            target: 'failed',
            actions: [{ type: 'countThought', params: thought }, 'recordTooLong'],
          },
          {
            guard: { type: 'mayAskAgain', params: fault },
            target: 'pausing',
            actions: [
              { type: 'countThought', params: thought },
              { type: 'setPause', params: fault },
            ],
          },
          {
            guard: { type: 'mayPark', params: fault },
            target: 'parked',
            actions: [
              { type: 'countThought', params: thought },
              { type: 'park', params: parksAt('thinking') },
            ],
          },
          {
            guard: { type: 'modelFailed', params: fault },
            target: 'failed',
            actions: [
              { type: 'countThought', params: thought },
              { type: 'recordModelFailure', params: fault },
            ],
          },
          {
            guard: { type: 'outOfCuts', params: thought },
            target: 'failed',
            actions: [{ type: 'countThought', params: thought }, 'recordTruncation'],
          },
          {
            guard: { type: 'answerTruncated', params: thought },
            target: 'considering',
            actions: [{ type: 'countThought', params: thought }, 'countCut'],
          },
          {
            guard: { type: 'needsApproval', params: thought },
            target: 'awaitingApproval',
            actions: [{ type: 'countThought', params: thought }, 'askApproval', 'stopClock'],
          },
          {
            guard: { type: 'callsTools', params: thought },
            target: 'acting',
            actions: { type: 'countThought', params: thought },
          },
          {
            guard: 'outOfNudges',
            target: 'failed',
            actions: [{ type: 'countThought', params: thought }, 'recordNoToolCalls'],
          },
          {
            target: 'considering',
            actions: [{ type: 'countThought', params: thought }, 'countNudge'],
          },
        ],
        onError: { target: 'failed', actions: { type: 'recordFailure', params: actorFailure } },
      },
    },
    compacting,
    pausing: {
      tags: 'phase:backing_off',
      meta: { says: 'the model call failed temporarily; it is repeated at the deadline' },
      on: {
        DEADLINE: [
          { guard: 'mayCompactAgain', target: 'compacting', actions: 'endPause' },
          { guard: 'pauseIsOver', target: 'thinking', actions: 'endPause' },
          { guard: 'outOfTime', target: 'failed', actions: 'recordTimeLimit' },
        ],
      },
    },
    acting: {
      tags: ['quiet', 'phase:acting'],
      meta: { says: 'the tool calls of this turn' },
      invoke: {
        id: 'act',
        src: 'act',
        input: ({ context }) => ({
          ...attemptInput({ context }),
          turn: context.usage.turns,
          denied: denial({ context }),
          allowed: allowedChanges({ context }),
          decision: context.decision,
        }),
        onDone: [
          {
            guard: { type: 'saysDoneUnaware', params: acted },
            target: 'preparing',
            actions: [{ type: 'countCalls', params: acted }, 'goOnTold'],
          },
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
              { type: 'recordGivenUp', params: acted },
            ],
          },
          {
            guard: { type: 'asksPerson', params: acted },
            target: 'awaitingInput',
            actions: [
              { type: 'countCalls', params: acted },
              { type: 'askInput', params: acted },
              'stopClock',
            ],
          },
          { target: 'considering', actions: { type: 'countCalls', params: acted } },
        ],
        onError: { target: 'failed', actions: { type: 'recordFailure', params: toolsFailure } },
      },
      on: { DEADLINE: { guard: 'outOfTime', target: 'failed', actions: 'recordTimeLimitInTools' } },
    },
    delegating,
    awaitingInput,
    awaitingApproval,
    awaitingDecision,
    returning,
    done: {
      type: 'final',
      tags: ['ended', 'phase:closing'],
      meta: { says: 'the agent called finish, or the assistant reported its result' },
    },
    parked: {
      type: 'final',
      tags: ['ended', 'phase:closing'],
      meta: {
        says: 'a limit of the provider or a budget stopped the agent; the attempt goes on here when it is over',
      },
    },
    failed: {
      type: 'final',
      tags: ['ended', 'phase:closing'],
      meta: { says: 'a limit, the model or the agent itself ended the attempt' },
    },
  },
  output: ({ context }): AttemptOutcome => {
    const { usage, waitedMs, failure, parking, finish } = context;
    const totals = {
      usage,
      ...leftUnread(context),
      ...(waitedMs === undefined ? {} : { waitedMs }),
    };
    if (failure !== null) return { status: 'failed', failure, ...totals };
    if (parking !== undefined) return { status: 'parked', parking, ...totals };
    return {
      status: 'done',
      summary: finish?.summary ?? '',
      artifacts: finish?.artifacts ?? [],
      answers: finish?.answers,
      ...totals,
    };
  },
});

export type AgentSnapshot = SnapshotFrom<typeof agentMachine>;
