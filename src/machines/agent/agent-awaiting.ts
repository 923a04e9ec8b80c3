import type { GoesOnAt } from './agent-context.ts';
import { actorFailure, attemptInput, response } from './agent-selectors.ts';
import { agentSetup } from './agent-setup.ts';

/** The attempt's clock stops during the wait, which has its own limit. */
const failUnanswered = { guard: 'outOfTime', target: 'failed', actions: 'recordNoAnswer' } as const;

/** Another task may use the slot until the answer. */
const lendSlot = {
  id: 'lend',
  src: 'lendSlot',
  input: attemptInput,
  onDone: { actions: 'ignore' },
  onError: { target: 'failed', actions: { type: 'recordFailure', params: actorFailure } },
} as const;

const goOnLater = (at: GoesOnAt) => ({ type: 'goOnLater', params: { at } }) as const;
const takeAnswer = { type: 'takeAnswer', params: response } as const;
const decision = { type: 'takeDecision', params: response } as const;

const answered = (goesOnAt: GoesOnAt) =>
  ({
    guard: { type: 'answersQuestion', params: response },
    target: 'returning',
    actions: [takeAnswer, goOnLater(goesOnAt)],
  }) as const;

const takeFallbackTo = (goesOnAt: GoesOnAt) =>
  ({
    guard: 'hasFallback',
    target: 'returning',
    actions: ['takeFallback', goOnLater(goesOnAt)],
  }) as const;

const takeFallbackLater = (at: 'awaitingInput' | 'awaitingApproval', goesOnAt: GoesOnAt) =>
  ({
    guard: { type: 'hadFallback', params: { at } },
    actions: ['takeFallback', goOnLater(goesOnAt), 'returnLater'],
  }) as const;

/** A wait that expired while no server ran has the same effect as one that expires in a server. */
export const lateResumes = [
  takeFallbackLater('awaitingInput', 'considering'),
  takeFallbackLater('awaitingApproval', 'acting'),
  { guard: 'wasAsking', target: 'failed', actions: 'recordNoAnswer' },
  { guard: 'wasReturning', target: 'failed', actions: 'recordNoSlot' },
  { guard: 'outOfTime', target: 'failed', actions: 'recordTimeLimit' },
] as const;

export const awaitingInput = agentSetup.createStateConfig({
  tags: ['awaiting', 'lent', 'phase:awaiting_input'],
  meta: { says: 'the agent asked a person and continues with the answer' },
  invoke: lendSlot,
  on: {
    DEADLINE: [takeFallbackTo('considering'), failUnanswered],
    respond: answered('considering'),
  },
});

export const awaitingApproval = agentSetup.createStateConfig({
  tags: ['awaiting', 'lent', 'phase:awaiting_approval'],
  meta: {
    says: 'a person must approve the calls of this turn, or the call that the assistant asks for; a denied call is not made',
  },
  invoke: lendSlot,
  on: {
    DEADLINE: [takeFallbackTo('acting'), failUnanswered],
    respond: answered('acting'),
    'assistant.ended': { target: 'returning', actions: goOnLater('delegating') },
  },
});

export const awaitingDecision = agentSetup.createStateConfig({
  tags: ['awaiting', 'lent', 'phase:awaiting_input'],
  meta: { says: 'a server stopped during a call, whose outcome is unknown; a person decides' },
  invoke: lendSlot,
  on: {
    DEADLINE: failUnanswered,
    respond: [
      {
        guard: { type: 'decidesOnAssistant', params: response },
        target: 'returning',
        actions: [decision, goOnLater('delegating'), 'forgetResume'],
      },
      {
        guard: { type: 'answersQuestion', params: response },
        target: 'returning',
        actions: [decision, goOnLater('acting'), 'forgetResume'],
      },
    ],
  },
});

const goOn = (at: GoesOnAt) =>
  ({ guard: { type: 'goesOn', params: { at } }, target: at, actions: 'startClock' }) as const;

export const returning = agentSetup.createStateConfig({
  tags: ['lent', 'phase:waiting_for_slot'],
  meta: {
    says: 'a person answered; the attempt continues when it has a slot again, before tasks that have not started',
  },
  invoke: {
    id: 'regain',
    src: 'regainSlot',
    input: attemptInput,
    onDone: [goOn('acting'), goOn('delegating'), { target: 'considering', actions: 'startClock' }],
    onError: { target: 'failed', actions: { type: 'recordFailure', params: actorFailure } },
  },
  on: { DEADLINE: { guard: 'outOfTime', target: 'failed', actions: 'recordNoSlot' } },
});
