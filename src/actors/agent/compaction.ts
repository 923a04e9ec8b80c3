import type { ModelMessage } from '../model/port.ts';
import { keepHeadAndTail } from '../process/head-tail-buffer.ts';

/** Stored, so that a later version of this code rebuilds the same bytes. */
export interface Compaction {
  /** The model's summary of the dropped messages; null when none are dropped. */
  readonly summary: string | null;
  /** The index of the first kept message; the very first message is always kept. */
  readonly from: number;
  readonly resultBytes: number | null;
}

/** Code has more characters per token: this estimates too many tokens rather than too few. */
const fewestCharactersPerToken = 3;
const maxSummaryCharacters = 16_000;
const minResultBytes = 256;

const characterCount = (messages: readonly ModelMessage[]): number =>
  JSON.stringify(messages).length;

/**
 * The indexes at which turns begin: at the message before an answer, else at the answer. The
 * results of its calls follow an answer at once, so a cut at such an index never parts them.
 */
const turnStarts = (messages: readonly ModelMessage[]): readonly number[] =>
  messages.flatMap(({ role }, index) =>
    index > 0 && role !== 'tool' && (index === 1 || messages[index - 1]?.role !== 'user')
      ? [index]
      : [],
  );

/** Everything from this index on is kept: the last turn and the messages since. */
const lastTurnStart = (
  messages: readonly ModelMessage[],
  starts: readonly number[],
): number | undefined => {
  const answer = messages.findLastIndex(({ role }) => role === 'assistant');
  return starts.findLast((start) => start <= answer) ?? starts.at(0);
};

/** The limit in bytes that lets every kept result fit; null when they fit as they are. */
const resultLimit = (kept: readonly ModelMessage[], room: number): number | null => {
  if (characterCount(kept) <= room) return null;
  const results = kept.filter(({ role }) => role === 'tool');
  if (results.length === 0) return null;
  const others = characterCount(kept) - results.reduce((sum, { text }) => sum + text.length, 0);
  return Math.max(minResultBytes, Math.floor((room - others) / results.length));
};

const summaryMessage = (summary: string): ModelMessage => ({
  role: 'user',
  text: `The conversation so far grew too long. In place of its older part stands what you wrote of it:\n\n${summary}\n\nGo on with the task from here. Read again what you need to know exactly.`,
});

const withShorterResult = (message: ModelMessage, bytes: number | null): ModelMessage =>
  message.role === 'tool' && bytes !== null
    ? { ...message, text: keepHeadAndTail(message.text, bytes) }
    : message;

export const applyCompaction = (
  messages: readonly ModelMessage[],
  { summary, from, resultBytes }: Compaction,
): ModelMessage[] => [
  ...messages.slice(0, 1),
  ...(summary === null ? [] : [summaryMessage(summary)]),
  ...messages.slice(from).map((message) => withShorterResult(message, resultBytes)),
];

export const summaryRequest: ModelMessage = {
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

export const boundedSummary = (text: string): string =>
  keepHeadAndTail(text.trim(), maxSummaryCharacters);

export interface CompactionPlan {
  readonly from: number;
  readonly resultBytes: number | null;
  /** The messages to summarise, with the first; empty when none are dropped. */
  readonly older: readonly ModelMessage[];
}

/**
 * Keeps the first message and as many whole last turns as fit, with the summary, into half of the
 * model's window. Keeps at least the last turn and cuts its results when it alone is too long. The
 * model has read all older messages in one request before, so it can read them once more to
 * summarise them. Null when nothing can be dropped.
 */
export const planCompaction = (
  messages: readonly ModelMessage[],
  contextWindow: number | null,
): CompactionPlan | null => {
  const starts = turnStarts(messages);
  const last = lastTurnStart(messages, starts);
  if (last === undefined) return null;
  const window =
    contextWindow === null ? Number.POSITIVE_INFINITY : contextWindow * fewestCharactersPerToken;
  const half = Math.min(characterCount(messages), window) / 2;
  const room =
    half - characterCount(messages.slice(0, 1)) - Math.min(maxSummaryCharacters, half / 4);
  const from =
    starts.find((start) => start <= last && characterCount(messages.slice(start)) <= room) ?? last;
  const resultBytes = resultLimit(messages.slice(from), room);
  const older = from > 1 ? messages.slice(0, from) : [];
  return older.length === 0 && resultBytes === null ? null : { from, resultBytes, older };
};

export const isShorter = (messages: readonly ModelMessage[], compaction: Compaction): boolean =>
  characterCount(applyCompaction(messages, compaction)) < characterCount(messages);
