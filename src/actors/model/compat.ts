/** What a server of chat completions wants otherwise than OpenAI's own (facts/peers 4); by `agent doctor --model`. */
export interface Compat {
  /** Null: as the host wants it. */
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens' | null;
  /** Whether it is asked for usage in the stream; some refuse a field that they do not know. */
  readonly streamOptions: boolean;
  /** The result of a tool says the tool's name. */
  readonly toolResultName: boolean;
  /** After results of tools an answer must come, before anybody else speaks. */
  readonly replyAfterTools: boolean;
  /** Calls that the model prints as text are taken as calls. */
  readonly textToolCalls: boolean;
}

/** The field for the limit of tokens that a host wants. */
export const maxTokensFieldAt = (host: string): 'max_tokens' | 'max_completion_tokens' =>
  host === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens';

export const defaultCompat: Compat = {
  maxTokensField: null,
  streamOptions: true,
  toolResultName: false,
  replyAfterTools: false,
  textToolCalls: false,
};
