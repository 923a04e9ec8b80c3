import type { AttemptOutcome, KeptMessages } from '../task.ts';
import type { AgentContext } from './agent-context.ts';

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
    ...(heard === undefined ? {} : { heard }),
    ...(left.length === 0 ? {} : { unread: left }),
  };
};
