import type { ModelRequest, ModelUsage } from './port.ts';

/** USD for a million tokens of a model. */
export interface Price {
  readonly input: number;
  readonly cachedInput: number;
  readonly output: number;
}

const usualCharactersPerToken = 4;

/** From lengths, where the provider gave no usage. */
export const estimatedUsage = (
  { system, messages }: Pick<ModelRequest, 'system' | 'messages'>,
  answer: string,
): ModelUsage => ({
  inputTokens: Math.ceil(
    (system.length + JSON.stringify(messages).length) / usualCharactersPerToken,
  ),
  outputTokens: Math.ceil(answer.length / usualCharactersPerToken),
  cachedTokens: 0,
});

const million = 1_000_000;

/** USD; null where the price is not configured. */
export const costOf = (price: Price | undefined, usage: ModelUsage): number | null => {
  if (price === undefined) return null;
  const { inputTokens, outputTokens, cachedTokens } = usage;
  const cached = Math.min(cachedTokens, inputTokens);
  const total =
    (inputTokens - cached) * price.input + cached * price.cachedInput + outputTokens * price.output;
  return total / million;
};
