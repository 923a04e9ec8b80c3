import type { ModelRequest, ModelUsage } from './port.ts';

/** USD for a million tokens of a model. */
export interface Price {
  readonly input: number;
  readonly cachedInput: number;
  /** Absent: as input. */
  readonly cacheWrite?: number;
  readonly output: number;
  /** The price of a call with more tokens in. */
  readonly above?: { readonly tokens: number; readonly price: Price };
}

const usualCharactersPerToken = 4;
/** Of a screenshot, with most models. */
const usualTokensPerImage = 1_500;

const imagesIn = (messages: ModelRequest['messages']): number =>
  messages.reduce(
    (sum, message) => sum + ('images' in message ? (message.images?.length ?? 0) : 0),
    0,
  );

/** From lengths, where the provider gave no usage. */
export const estimatedUsage = (
  { system, messages }: Pick<ModelRequest, 'system' | 'messages'>,
  answer: string,
): ModelUsage => ({
  inputTokens:
    Math.ceil((system.length + JSON.stringify(messages).length) / usualCharactersPerToken) +
    imagesIn(messages) * usualTokensPerImage,
  outputTokens: Math.ceil(answer.length / usualCharactersPerToken),
  cachedTokens: 0,
});

const million = 1_000_000;

/** USD; null where the price is not known. */
export const costOf = (price: Price | undefined, usage: ModelUsage): number | null => {
  if (price === undefined) return null;
  const { inputTokens, outputTokens, cachedTokens, cacheWriteTokens = 0 } = usage;
  if (price.above !== undefined && inputTokens > price.above.tokens)
    return costOf(price.above.price, usage);
  const cached = Math.min(cachedTokens, inputTokens);
  const written = Math.min(cacheWriteTokens, inputTokens - cached);
  const total =
    (inputTokens - cached - written) * price.input +
    cached * price.cachedInput +
    written * (price.cacheWrite ?? price.input) +
    outputTokens * price.output;
  return total / million;
};
