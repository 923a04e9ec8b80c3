import {
  actorFailure,
  delegated,
  delegateInput,
  fault,
  parksAt,
  reported,
} from './agent-selectors.ts';
import { agentSetup } from './agent-setup.ts';

const overLimit = (what: 'recordTurnLimit' | 'recordTokenLimit' | 'recordCostLimit') =>
  [{ type: 'countSpent', params: reported }, what] as const;

/** A question of an assistant that is over a limit is not put to a person. */
const asksOver = (
  guard: 'asksOverTurns' | 'asksOverTokens' | 'asksOverMoney',
  what: 'recordTurnLimit' | 'recordTokenLimit' | 'recordCostLimit',
) =>
  ({
    guard: { type: guard, params: delegated },
    target: 'failed',
    actions: [{ type: 'countDelegated', params: delegated }, what],
  }) as const;

/** Each model call of the assistant counts as a turn. Over a limit, the assistant is stopped. */
export const delegating = agentSetup.createStateConfig({
  tags: 'phase:acting',
  meta: { says: 'an assistant program works on the task with a loop of its own' },
  invoke: {
    id: 'delegate',
    src: 'delegate',
    input: delegateInput,
    onDone: [
      asksOver('asksOverTurns', 'recordTurnLimit'),
      asksOver('asksOverTokens', 'recordTokenLimit'),
      asksOver('asksOverMoney', 'recordCostLimit'),
      {
        guard: { type: 'asksPermission', params: delegated },
        target: 'awaitingApproval',
        actions: [
          { type: 'countDelegated', params: delegated },
          { type: 'askPermission', params: delegated },
          'stopClock',
        ],
      },
      {
        guard: { type: 'mayPark', params: fault },
        target: 'parked',
        actions: [
          { type: 'countDelegated', params: delegated },
          { type: 'park', params: parksAt('delegating') },
        ],
      },
      {
        guard: { type: 'assistantFailed', params: delegated },
        target: 'failed',
        actions: { type: 'takeDelegated', params: delegated },
      },
      {
        guard: { type: 'doneUnaware', params: delegated },
        target: 'preparing',
        actions: [{ type: 'countDelegated', params: delegated }, 'goOnTold'],
      },
      { target: 'done', actions: { type: 'takeDelegated', params: delegated } },
    ],
    onError: { target: 'failed', actions: { type: 'recordFailure', params: actorFailure } },
  },
  on: {
    'assistant.reported': [
      {
        guard: { type: 'overTurns', params: reported },
        target: 'failed',
        actions: overLimit('recordTurnLimit'),
      },
      {
        guard: { type: 'overTokens', params: reported },
        target: 'failed',
        actions: overLimit('recordTokenLimit'),
      },
      {
        guard: { type: 'overMoney', params: reported },
        target: 'failed',
        actions: overLimit('recordCostLimit'),
      },
      { actions: { type: 'countSpent', params: reported } },
    ],
  },
});
