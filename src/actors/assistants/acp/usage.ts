import { z } from 'zod';
import type { TokensUsed } from '../port.ts';

/**
 * The meaning of the usage in the answer to a prompt. `cached_apart`: all calls, and the input is
 * without cached tokens. `quota`: all calls, in `_meta.quota`. `untold`: not told, or of the last
 * call alone.
 */
export type UsageMeaning = 'cached_apart' | 'quota' | 'untold';

const reportedCount = z.number().nonnegative().nullish();
const acpUsageSchema = z.looseObject({
  inputTokens: reportedCount,
  outputTokens: reportedCount,
  cachedReadTokens: reportedCount,
  cachedWriteTokens: reportedCount,
});
const tokenCountSchema = z.looseObject({
  input_tokens: reportedCount,
  output_tokens: reportedCount,
});
const promptAnswerSchema = z.looseObject({
  usage: acpUsageSchema.nullish().catch(null),
  _meta: z
    .looseObject({ quota: z.looseObject({ token_count: tokenCountSchema }).nullish() })
    .nullish()
    .catch(null),
});

/** The tokens of a prompt, or null if the agent does not report them. */
export const tokensIn = (answer: unknown, meaning: UsageMeaning): TokensUsed | null => {
  const { usage, _meta } = promptAnswerSchema.safeParse(answer).data ?? {};
  const quota = _meta?.quota?.token_count;
  if (meaning === 'quota' && quota != null)
    return {
      inputTokens: quota.input_tokens ?? 0,
      outputTokens: quota.output_tokens ?? 0,
      cachedTokens: 0,
    };
  if (meaning !== 'cached_apart' || usage == null) return null;
  const cachedTokens = usage.cachedReadTokens ?? 0;
  const cacheWriteTokens = usage.cachedWriteTokens ?? 0;
  return {
    inputTokens: (usage.inputTokens ?? 0) + cachedTokens + cacheWriteTokens,
    outputTokens: usage.outputTokens ?? 0,
    cachedTokens,
    cacheWriteTokens,
  };
};
