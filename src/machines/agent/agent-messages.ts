import type { Usage } from '../task.ts';
import type { AgentContext, Tell } from './agent-context.ts';

const unreadAtMost = 20;
/** In UTF-16 units, of all of them. */
const unreadLengthAtMost = 65_536;

type Read = Pick<AgentContext, 'unread' | 'told'>;

export const hasRoomFor = ({ unread = [] }: Read, { text }: Tell): boolean =>
  unread.length < unreadAtMost && unread.join('').length + text.length <= unreadLengthAtMost;

/**
 * Messages that the agent reads at its next turn. They are fixed when the request of the turn is
 * made for the first time; a turn that was compacted may have been requested before.
 */
export const toldNext = ({
  unread,
  told,
  usage,
  compactedFor,
}: Read & Pick<AgentContext, 'usage' | 'compactedFor'>): Read => {
  const mayBeFixed = told !== undefined || compactedFor === usage.turns + 1;
  return mayBeFixed ? { unread, told } : { unread: undefined, told: unread };
};

/**
 * True for an agent that ended before it read what a person said, and has a turn left. Without one
 * its work counts as it is.
 */
export const mustReadOn = ({ unread, limits }: AgentContext, usage: Usage): boolean =>
  unread !== undefined &&
  usage.turns < limits.maxTurns &&
  (limits.maxTokensTotal === null ||
    usage.input_tokens + usage.output_tokens < limits.maxTokensTotal) &&
  (limits.maxCostUsd === null || (usage.cost_usd ?? Number.POSITIVE_INFINITY) < limits.maxCostUsd);
