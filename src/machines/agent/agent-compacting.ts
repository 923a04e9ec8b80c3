import {
  actorFailure,
  attemptInput,
  compacted,
  fault,
  parksAt,
  spentOnFailure,
} from './agent-selectors.ts';
import { agentSetup } from './agent-setup.ts';

/** Shortens the conversation (ADR 0016), at most once per turn. */
export const compacting = agentSetup.createStateConfig({
  tags: ['quiet', 'phase:thinking'],
  meta: { says: 'the conversation is too long for the model: a summary replaces its older part' },
  invoke: {
    id: 'compact',
    src: 'compact',
    input: ({ context }) => ({
      ...attemptInput({ context }),
      turn: context.usage.turns + 1,
      contextWindow: context.limits.contextWindow,
    }),
    onDone: [
      {
        guard: { type: 'failsOverMoney', params: spentOnFailure },
        target: 'failed',
        actions: [{ type: 'countSummary', params: compacted }, 'recordCostLimit'],
      },
      {
        guard: { type: 'mayAskAgain', params: fault },
        target: 'pausing',
        actions: [
          { type: 'countSummary', params: compacted },
          { type: 'setPause', params: fault },
        ],
      },
      {
        guard: { type: 'mayPark', params: fault },
        target: 'parked',
        actions: [
          { type: 'countSummary', params: compacted },
          { type: 'park', params: parksAt('compacting') },
        ],
      },
      {
        guard: { type: 'modelFailed', params: fault },
        target: 'failed',
        actions: [
          { type: 'countSummary', params: compacted },
          { type: 'recordModelFailure', params: fault },
        ],
      },
      {
        target: 'considering',
        actions: [{ type: 'countSummary', params: compacted }, 'noteCompaction'],
      },
    ],
    onError: { target: 'failed', actions: { type: 'recordFailure', params: actorFailure } },
  },
});
