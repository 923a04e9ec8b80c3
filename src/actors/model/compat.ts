/**
 * Settings for servers that differ from OpenAI's chat completions; `agent doctor --model` finds
 * them.
 */
export interface Compat {
  /** Null: the host decides. */
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens' | null;
  /** Asks for usage in the stream; some servers refuse fields that they do not know. */
  readonly streamOptions: boolean;
  readonly toolResultName: boolean;
  /** Puts an assistant message between tool results and the next user message. */
  readonly replyAfterTools: boolean;
  readonly textToolCalls: boolean;
}

export const maxTokensFieldAt = (host: string): 'max_tokens' | 'max_completion_tokens' =>
  host === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens';

export const defaultCompat: Compat = {
  maxTokensField: null,
  streamOptions: true,
  toolResultName: false,
  replyAfterTools: false,
  textToolCalls: false,
};
