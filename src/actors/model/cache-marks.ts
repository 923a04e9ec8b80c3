import type { SdkType } from './ai-sdk-packages.ts';
import type { PartOptions } from './reasoning.ts';

/** `1h`: for an hour instead of five minutes. */
export type CacheMode = 'auto' | 'off' | '1h';

/** Options of parts of a prompt that ask the provider to keep all up to there. */
export interface CacheMarks {
  readonly onSystem: PartOptions | undefined;
  readonly onTurns: PartOptions | undefined;
}

const none: CacheMarks = { onSystem: undefined, onTurns: undefined };

/** Models of Bedrock from before prompt caching refuse to be asked for it. */
const withoutCache = /claude-(v2|instant|3-(haiku|sonnet|opus)|3-5-sonnet)/;
/** For an hour: Claude 4.5 and later. */
const withHour = /claude-(opus|sonnet|haiku)-(4-[5-9]|[5-9])/;

const bedrockMarks = (model: string, cache: CacheMode): CacheMarks => {
  const isClaude = /anthropic\.claude-/.test(model) && !withoutCache.test(model);
  const isNova = /amazon\.nova-/.test(model);
  if (!isClaude && !isNova) return none;
  const ttl = cache === '1h' && withHour.test(model) ? { ttl: '1h' } : {};
  const mark = { bedrock: { cachePoint: { type: 'default', ...ttl } } };
  // Nova takes no such point after a result of a tool.
  return { onSystem: mark, onTurns: isClaude ? mark : undefined };
};

/** Gemini keeps what it read by itself. */
export const cacheMarks = (type: SdkType, model: string, cache: CacheMode): CacheMarks => {
  if (cache === 'off' || type === 'google') return none;
  if (type === 'bedrock') return bedrockMarks(model, cache);
  if (type === 'vertex' && !model.startsWith('claude-')) return none;
  const cacheControl = { type: 'ephemeral', ...(cache === '1h' ? { ttl: '1h' } : {}) };
  return { onSystem: { anthropic: { cacheControl } }, onTurns: { anthropic: { cacheControl } } };
};
