import type { ModelUsage } from './port.ts';

/** USD for a million tokens of a model. */
export interface Price {
  readonly input: number;
  readonly cachedInput: number;
  readonly output: number;
}

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
