import type { ModelUsage, ToolCall } from '../port.ts';
import type { Thoughts } from '../reasoning.ts';

export interface Assembly<Chunk> {
  /**
   * Returns the text that the chunk adds, and whether it adds anything at all.
   * @throws APIError when the chunk reports an error of the provider
   */
  add(chunk: Chunk): { readonly text: string; readonly progress: boolean };
  /** The provider marked the end of the stream, with or without a finish reason. */
  end(): void;
  readonly chunks: () => number;
  /**
   * A reason of chat completions: `stop`, `tool_calls`, `length`, `content_filter`; null until the
   * answer ends.
   */
  readonly finishReason: () => string | null;
  readonly text: () => string;
  readonly calls: () => readonly ToolCall[];
  readonly usage: () => ModelUsage | null;
  readonly thinking: () => Thoughts | null;
}

/** Replaces missing and doubled ids, so that every call gets exactly one result. */
export const withOwnIds = <Call extends { readonly id: string }>(
  calls: readonly Call[],
): readonly Call[] => {
  const seen = new Set<string>();
  return calls.map((call, index) => {
    const id = call.id === '' || seen.has(call.id) ? `call_${index}_${seen.size}` : call.id;
    seen.add(id);
    return { ...call, id };
  });
};

export const callsInOrder = (calls: ReadonlyMap<number, ToolCall>): readonly ToolCall[] =>
  withOwnIds([...calls].sort(([one], [other]) => one - other).map(([, call]) => call));

export const validCount = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;

/** OpenRouter and LiteLLM report the tokens that Anthropic's cache took, by names of their own. */
export const cacheWritesIn = (details: object | undefined): number => {
  const given: Readonly<Record<string, unknown>> = { ...details };
  return (
    validCount(given['cache_write_tokens']) || validCount(given['cache_creation_input_tokens'])
  );
};

/** The last messages of the last two turns of the user: a cache keeps all up to there. */
export const cachedPlaces = (messages: readonly { readonly role: string }[]): ReadonlySet<number> =>
  new Set(
    messages
      .flatMap(({ role }, at) =>
        role !== 'assistant' && (messages[at + 1]?.role ?? 'assistant') === 'assistant' ? [at] : [],
      )
      .slice(-2),
  );
