import type { AttemptOutcome, KeptMessages, Usage } from '../task.ts';
import type { AgentContext, Tell } from './agent-context.ts';

const noneKept: KeptMessages = { before: 0, texts: [] };

export const withMessage = (kept: KeptMessages = noneKept, text: string): KeptMessages => ({
  ...kept,
  texts: [...kept.texts, text],
});

/** Messages after an agent ended: without those that it took, with those that it left unread. */
export const keptAfter = (
  kept: KeptMessages | undefined,
  { heard, unread = [] }: Pick<AttemptOutcome, 'heard' | 'unread'>,
): KeptMessages | undefined => {
  if (kept === undefined && unread.length === 0) return undefined;
  const { before, texts } = kept ?? noneKept;
  const taken = Math.max(0, (heard ?? before) - before);
  return { before: before + taken - unread.length, texts: [...unread, ...texts.slice(taken)] };
};

/** Messages for a new attempt, whose agent has taken none. */
export const keptForNext = (kept: KeptMessages | undefined): KeptMessages | undefined =>
  kept === undefined || kept.texts.length === 0 ? undefined : { ...noneKept, texts: kept.texts };

/** Messages of an agent that begins or goes on: it reads the rest at its next turn. */
export const messagesAtStart = (
  kept: KeptMessages | undefined,
  { heard, unread = [] }: Pick<AgentContext, 'heard' | 'unread'> = {},
): Pick<AgentContext, 'heard' | 'unread'> => {
  if (kept === undefined) return {};
  const { before, texts } = kept;
  const all = [...unread, ...texts.slice(Math.max(0, (heard ?? before) - before))];
  return {
    heard: Math.max(heard ?? 0, before + texts.length),
    ...(all.length === 0 ? {} : { unread: all }),
  };
};

/** Messages that an agent leaves to the next one; a parked one keeps them. */
export const leftUnread = ({
  heard,
  told = [],
  unread = [],
  parking,
}: Pick<AgentContext, 'heard' | 'told' | 'unread' | 'parking'>): Pick<
  AttemptOutcome,
  'heard' | 'unread'
> => {
  const left = parking === undefined ? [...told, ...unread] : [];
  return {
    heard,
    ...(left.length === 0 ? {} : { unread: left }),
  };
};

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
