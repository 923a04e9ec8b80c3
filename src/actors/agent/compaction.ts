import type { Message } from '../model/port.ts';
import { headAndTail } from '../process/head-tail-buffer.ts';

/** How a conversation was made shorter; kept as it is, so that a later version of this code rebuilds the same bytes. */
export interface Compaction {
  /** What the model wrote of the messages that are gone; null when none are. */
  readonly summary: string | null;
  /** The first message that is kept, beside the very first of all. */
  readonly from: number;
  /** What the tool results of the kept turns are cut to (bytes), or null. */
  readonly resultBytes: number | null;
}

/** Code has about this many characters for a token; a few too few are better than a few too many. */
const fewestCharactersPerToken = 3;
const maxSummaryCharacters = 16_000;
const minResultBytes = 256;

const characterCount = (messages: readonly Message[]): number => JSON.stringify(messages).length;

/**
 * Where turns begin: with what was said before an answer, else with the answer. The results of its calls always follow
 * an answer at once, so that no cut at such a place parts them.
 */
const turnStarts = (messages: readonly Message[]): readonly number[] =>
  messages.flatMap(({ role }, index) =>
    index > 0 && role !== 'tool' && (index === 1 || messages[index - 1]?.role !== 'user') ? [index] : [],
  );

/** The place from which at least is kept: the last turn, with what was said since. */
const lastTurnStart = (messages: readonly Message[], starts: readonly number[]): number | undefined => {
  const answer = messages.findLastIndex(({ role }) => role === 'assistant');
  return starts.findLast((start) => start <= answer) ?? starts.at(0);
};

/** What the results of the kept turns are cut to, so that all of them have room; null when they have it as they are. */
const resultLimit = (kept: readonly Message[], room: number): number | null => {
  if (characterCount(kept) <= room) return null;
  const results = kept.filter(({ role }) => role === 'tool');
  if (results.length === 0) return null;
  const others = characterCount(kept) - results.reduce((sum, { text }) => sum + text.length, 0);
  return Math.max(minResultBytes, Math.floor((room - others) / results.length));
};

const summaryMessage = (summary: string): Message => ({
  role: 'user',
  text: `The conversation so far grew too long. In place of its older part stands what you wrote of it:\n\n${summary}\n\nGo on with the task from here. Read again what you need to know exactly.`,
});

const withShorterResult = (message: Message, bytes: number | null): Message =>
  message.role === 'tool' && bytes !== null ? { ...message, text: headAndTail(message.text, bytes) } : message;

export const applyCompaction = (
  messages: readonly Message[],
  { summary, from, resultBytes }: Compaction,
): Message[] => [
  ...messages.slice(0, 1),
  ...(summary === null ? [] : [summaryMessage(summary)]),
  ...messages.slice(from).map((message) => withShorterResult(message, resultBytes)),
];

/** What is said to the model in the end of what it is to summarise. */
export const summaryRequest: Message = {
  role: 'user',
  text: `This conversation is getting too long for you. Its beginning, up to here, will be replaced by what you answer now; the task itself stays, and so do the turns that follow.

Answer in words, without calling a tool, and in this order:
- the goal, as you understand it, and what a person or a check said of it
- what is done, and how you know
- what is open, the next step first
- the files that you read or changed: path, what matters in it, what you changed
- decisions, and what was tried and did not work

Be exact in names, paths, commands and error messages, and leave out what nobody will need again.`,
};

/** A summary that is as long as it may be. */
export const boundedSummary = (text: string): string => headAndTail(text.trim(), maxSummaryCharacters);

export interface CompactionPlan {
  readonly from: number;
  readonly resultBytes: number | null;
  /** What is to be summarised, the first message included; empty when nothing is dropped. */
  readonly older: readonly Message[];
}

/**
 * What of a conversation is kept: the first message, and of the last turns as many whole ones as have room in the half
 * of the model's window, the summary counted in; at least the last one, its results cut where it alone is too long. All
 * that is older has been read by the model in one piece before, so it can be read once more to be summarised. Null when
 * nothing can be left out.
 */
export const planCompaction = (messages: readonly Message[], contextWindow: number | null): CompactionPlan | null => {
  const starts = turnStarts(messages);
  const last = lastTurnStart(messages, starts);
  if (last === undefined) return null;
  const window = contextWindow === null ? Number.POSITIVE_INFINITY : contextWindow * fewestCharactersPerToken;
  const half = Math.min(characterCount(messages), window) / 2;
  const room = half - characterCount(messages.slice(0, 1)) - Math.min(maxSummaryCharacters, half / 4);
  const from = starts.find((start) => start <= last && characterCount(messages.slice(start)) <= room) ?? last;
  const resultBytes = resultLimit(messages.slice(from), room);
  const older = from > 1 ? messages.slice(0, from) : [];
  return older.length === 0 && resultBytes === null ? null : { from, resultBytes, older };
};

/** Whether the conversation became shorter by it. */
export const isShorter = (messages: readonly Message[], compaction: Compaction): boolean =>
  characterCount(applyCompaction(messages, compaction)) < characterCount(messages);
