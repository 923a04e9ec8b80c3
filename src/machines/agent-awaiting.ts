import type { GoesOnAt } from './agent-context.ts';
import { broken, response, seat } from './agent-selectors.ts';
import { agentSetup } from './agent-setup.ts';

/** Waiting for a person stops the attempt's clock; the wait has a limit of its own. */
const unanswered = { guard: 'outOfTime', target: 'failed', actions: 'blameNobody' } as const;

/** Nobody works while a person is waited for: the slot is another's until then. */
const lendSlot = {
  id: 'lend',
  src: 'lendSlot',
  input: seat,
  onDone: { actions: 'keep' },
  onError: { target: 'failed', actions: { type: 'recordFailure', params: broken } },
} as const;

const later = (at: GoesOnAt) => ({ type: 'goOnLater', params: { at } }) as const;
const answer = { type: 'takeAnswer', params: response } as const;
const decision = { type: 'takeDecision', params: response } as const;

const answered = (goesOnAt: GoesOnAt) =>
  ({
    guard: { type: 'answersQuestion', params: response },
    target: 'returning',
    actions: [answer, later(goesOnAt)],
  }) as const;

/** What counts where nobody answers is taken like an answer. */
const assumed = (goesOnAt: GoesOnAt) =>
  ({ guard: 'hasFallback', target: 'returning', actions: ['takeFallback', later(goesOnAt)] }) as const;

const assumedLater = (at: 'awaitingInput' | 'awaitingApproval', goesOnAt: GoesOnAt) =>
  ({
    guard: { type: 'hadFallback', params: { at } },
    actions: ['takeFallback', later(goesOnAt), 'returnLater'],
  }) as const;

/** A wait of an earlier process that is over before the table is set again ends as it would have then. */
export const overdue = [
  assumedLater('awaitingInput', 'considering'),
  assumedLater('awaitingApproval', 'acting'),
  { guard: 'wasAsking', target: 'failed', actions: 'blameNobody' },
  { guard: 'wasReturning', target: 'failed', actions: 'blameQueue' },
  { guard: 'outOfTime', target: 'failed', actions: 'blameTime' },
] as const;

export const awaitingInput = agentSetup.createStateConfig({
  tags: ['awaiting', 'lent', 'phase:awaiting_input'],
  meta: { says: 'the agent asked a person and goes on with the answer' },
  invoke: lendSlot,
  on: { DEADLINE: [assumed('considering'), unanswered], respond: answered('considering') },
});

export const awaitingApproval = agentSetup.createStateConfig({
  tags: ['awaiting', 'lent', 'phase:awaiting_approval'],
  meta: { says: 'a person must allow the calls of this turn; what is denied is not made' },
  invoke: lendSlot,
  on: { DEADLINE: [assumed('acting'), unanswered], respond: answered('acting') },
});

export const awaitingDecision = agentSetup.createStateConfig({
  tags: ['awaiting', 'lent', 'phase:awaiting_input'],
  meta: { says: 'the end of a server left unclear what a call or an assistant did; a person says what to do' },
  invoke: lendSlot,
  on: {
    DEADLINE: unanswered,
    respond: [
      {
        guard: { type: 'decidesOnAssistant', params: response },
        target: 'returning',
        actions: [decision, later('delegating'), 'forgetResume'],
      },
      {
        guard: { type: 'answersQuestion', params: response },
        target: 'returning',
        actions: [decision, later('acting'), 'forgetResume'],
      },
    ],
  },
});

const goOn = (at: GoesOnAt) =>
  ({ guard: { type: 'goesOn', params: { at } }, target: at, actions: 'startClock' }) as const;

export const returning = agentSetup.createStateConfig({
  tags: ['lent', 'phase:waiting_for_slot'],
  meta: { says: 'a person answered; it goes on when it has a slot again, before those who have not begun' },
  invoke: {
    id: 'regain',
    src: 'regainSlot',
    input: seat,
    onDone: [goOn('acting'), goOn('delegating'), { target: 'considering', actions: 'startClock' }],
    onError: { target: 'failed', actions: { type: 'recordFailure', params: broken } },
  },
  on: { DEADLINE: { guard: 'outOfTime', target: 'failed', actions: 'blameQueue' } },
});
