import type { ModelMessage, ToolCall } from '../model/port.ts';
import { keepHeadAndTail } from '../process/head-tail-buffer.ts';
import type { CallResult } from '../tools/port.ts';
import { applyCompaction, type Compaction } from './compaction.ts';
import type { ModelAnswer } from './turn-steps.ts';

/** Append-only until it is compacted. */
export interface Conversation {
  readonly messages: readonly ModelMessage[];
  /** Adds the messages before a turn; a second call for the same turn adds nothing. */
  addMessages(turn: number, texts: readonly string[]): void;
  /** Drops the calls of a truncated answer. */
  addAnswer(answer: ModelAnswer): void;
  addResults(results: readonly CallResult[]): void;
  compact(compaction: Compaction): void;
  pendingCalls(): readonly ToolCall[];
  repeats(): number;
}

/** A truncated answer is cut to this, enough for the model to recognise it. */
const cutTextBytes = 2 * 1024;

export const createConversation = (first: string): Conversation => {
  let messages: ModelMessage[] = [{ role: 'user', text: first }];
  let pending: readonly ToolCall[] = [];
  let last = '';
  let repeats = 0;
  let lastTurn = 0;

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
    addMessages: (turn, texts) => {
      if (turn <= lastTurn) return;
      lastTurn = turn;
      for (const text of texts) messages.push({ role: 'user', text });
    },
    addAnswer: ({ text, calls, truncated, reasoning }) => {
      pending = truncated ? [] : calls;
      // Some providers refuse an answer without text, and reasoning without the calls after it.
      if (truncated)
        messages.push({
          role: 'assistant',
          text: keepHeadAndTail(text, cutTextBytes).trim() || '(cut off)',
          calls: [],
        });
      else
        messages.push({
          role: 'assistant',
          text: calls.length === 0 && text.trim() === '' ? '(no answer)' : text,
          calls,
          ...(reasoning === undefined ? {} : { reasoning }),
        });
    },
    addResults: (results) => {
      for (const result of results) {
        count(result);
        messages.push({
          role: 'tool',
          callId: result.callId,
          tool: result.tool,
          text: result.text,
          ok: result.ok,
        });
      }
    },
    compact: (compaction) => {
      messages = applyCompaction(messages, compaction);
    },
    pendingCalls: () => pending,
    repeats: () => repeats,
  };
};
