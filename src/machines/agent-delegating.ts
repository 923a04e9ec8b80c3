import { broken, delegated, order, reported } from './agent-selectors.ts';
import { agentSetup } from './agent-setup.ts';

const blamed = (what: 'blameTurns' | 'blameTokens' | 'blameMoney') =>
  [{ type: 'countSpent', params: reported }, what] as const;

/** Where the model's turns are an assistant's own: it says what it spends, and is ended when that is too much. */
export const delegating = agentSetup.createStateConfig({
  tags: 'phase:acting',
  meta: { says: 'an assistant program works on the task with a loop of its own' },
  invoke: {
    id: 'delegate',
    src: 'delegate',
    input: order,
    onDone: [
      {
        guard: { type: 'assistantFailed', params: delegated },
        target: 'failed',
        actions: { type: 'takeDelegated', params: delegated },
      },
      { target: 'done', actions: { type: 'takeDelegated', params: delegated } },
    ],
    onError: { target: 'failed', actions: { type: 'recordFailure', params: broken } },
  },
  on: {
    'assistant.reported': [
      { guard: { type: 'overTurns', params: reported }, target: 'failed', actions: blamed('blameTurns') },
      { guard: { type: 'overTokens', params: reported }, target: 'failed', actions: blamed('blameTokens') },
      { guard: { type: 'overMoney', params: reported }, target: 'failed', actions: blamed('blameMoney') },
      { actions: { type: 'countSpent', params: reported } },
    ],
  },
});
