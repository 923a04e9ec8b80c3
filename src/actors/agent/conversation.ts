import type { Message, ToolCall } from '../model/port.ts';
import type { CallResult } from './tools/port.ts';

/** The append-only conversation of one attempt, with what the guards ask of it. */
export interface Conversation {
  readonly messages: readonly Message[];
  say(text: string): void;
  answer(text: string, calls: readonly ToolCall[]): void;
  results(results: readonly CallResult[]): void;
  /** The tool calls of the last answer. */
  pendingCalls(): readonly ToolCall[];
  /** How often in a row the last call was made with the same arguments and the same result. */
  repeats(): number;
}

export const createConversation = (first: string): Conversation => {
  const messages: Message[] = [{ role: 'user', text: first }];
  let pending: readonly ToolCall[] = [];
  let last = '';
  let repeats = 0;

  const count = (result: CallResult): void => {
    const call = pending.find(({ id }) => id === result.callId);
    const signature = JSON.stringify([result.tool, call?.arguments, result.ok, result.text]);
    repeats = signature === last ? repeats + 1 : 1;
    last = signature;
  };

  return {
    messages,
    say: (text) => {
      messages.push({ role: 'user', text });
    },
    answer: (text, calls) => {
      messages.push({ role: 'assistant', text, calls });
      pending = calls;
    },
    results: (results) => {
      for (const result of results) {
        count(result);
        messages.push({ role: 'tool', callId: result.callId, tool: result.tool, text: result.text, ok: result.ok });
      }
    },
    pendingCalls: () => pending,
    repeats: () => repeats,
  };
};
