import type { Message, ToolCall } from '../model/port.ts';
import { headAndTail } from '../process/head-tail-buffer.ts';
import type { CallResult } from '../tools/port.ts';
import { applyCompaction, type Compaction } from './compaction.ts';
import type { ModelAnswer } from './steps.ts';

/** The conversation of one attempt, append-only until it is compacted, with what the guards ask of it. */
export interface Conversation {
  readonly messages: readonly Message[];
  /** What is said before a turn; a turn that is taken again hears it once. */
  hear(turn: number, said: readonly string[]): void;
  /** The calls of an answer that was cut are not taken. */
  answer(answer: ModelAnswer): void;
  results(results: readonly CallResult[]): void;
  compact(compaction: Compaction): void;
  /** The tool calls of the last answer. */
  pendingCalls(): readonly ToolCall[];
  /** How often in a row the last call was made with the same arguments and the same result. */
  repeats(): number;
}

/** Of an answer that was cut the model is shown enough to know it again. */
const cutTextBytes = 2 * 1024;

export const createConversation = (first: string): Conversation => {
  let messages: Message[] = [{ role: 'user', text: first }];
  let pending: readonly ToolCall[] = [];
  let last = '';
  let repeats = 0;
  let heard = 0;

  const count = (result: CallResult): void => {
    const call = pending.find(({ id }) => id === result.callId);
    const signature = JSON.stringify([result.tool, call?.arguments, result.ok, result.text]);
    repeats = signature === last ? repeats + 1 : 1;
    last = signature;
  };

  return {
    get messages() {
      return messages;
    },
    hear: (turn, said) => {
      if (turn <= heard) return;
      heard = turn;
      for (const text of said) messages.push({ role: 'user', text });
    },
    answer: ({ text, calls, truncated, reasoning }) => {
      pending = truncated ? [] : calls;
      // Some providers refuse an answer without words, and thoughts without what they led to.
      if (truncated)
        messages.push({ role: 'assistant', text: headAndTail(text, cutTextBytes) || '(cut off)', calls: [] });
      else messages.push({ role: 'assistant', text, calls, ...(reasoning === undefined ? {} : { reasoning }) });
    },
    results: (results) => {
      for (const result of results) {
        count(result);
        messages.push({ role: 'tool', callId: result.callId, tool: result.tool, text: result.text, ok: result.ok });
      }
    },
    compact: (compaction) => {
      messages = applyCompaction(messages, compaction);
    },
    pendingCalls: () => pending,
    repeats: () => repeats,
  };
};
