import type { ModelUsage, ToolCall } from './port.ts';
import type { Thoughts } from './reasoning.ts';

/** Puts the chunks of one streamed answer together, whatever its protocol. */
export interface Assembly<Chunk> {
  /**
   * Takes a chunk in; answers with the text that it adds, and whether it adds anything at all.
   * @throws APIError where the chunk is the provider's report of an error
   */
  add(chunk: Chunk): { readonly text: string; readonly progress: boolean };
  readonly chunks: () => number;
  /** In the words of chat completions: `stop`, `tool_calls`, `length`, `content_filter`; null until the answer ends. */
  readonly finishReason: () => string | null;
  readonly text: () => string;
  readonly calls: () => readonly ToolCall[];
  readonly usage: () => ModelUsage | null;
  readonly thinking: () => Thoughts | null;
}

/** Ids that are missing or doubled are made up, so that every call gets exactly one result. */
const withOwnIds = (calls: readonly ToolCall[]): readonly ToolCall[] => {
  const seen = new Set<string>();
  return calls.map((call, index) => {
    const id = call.id === '' || seen.has(call.id) ? `call_${index}_${seen.size}` : call.id;
    seen.add(id);
    return { ...call, id };
  });
};

/** The calls in the order of their index in the answer, each with an id of its own. */
export const inOrder = (calls: ReadonlyMap<number, ToolCall>): readonly ToolCall[] =>
  withOwnIds([...calls].sort(([one], [other]) => one - other).map(([, call]) => call));

/** A count as providers send it; what is none counts as 0. */
export const validCount = (value: number | undefined): number =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : 0;
