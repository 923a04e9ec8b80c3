import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import type { ModelPrice } from '@pydantic/genai-prices';
import { addressKind } from '../network/addresses.ts';
import { builtFile } from '../process/run-in-thread.ts';
import type { Price } from './price.ts';

/** Loaded when a price is first asked for: it has 600 kB, and the server starts without it. */
const table = (): typeof import('./price-data.ts') =>
  createRequire(import.meta.url)(builtFile(new URL('./price-data.js', import.meta.url).href));

/** The table has no date of its own. */
export const priceTable = '@pydantic/genai-prices 0.1.8';

/** Providers of models on the user's own machines. */
const localProviders: ReadonlySet<string> = new Set([
  'ollama',
  'lmstudio',
  'vllm',
  'llamacpp',
  'llama.cpp',
]);

const isLocal = (host: string): boolean => {
  const address = host.replace(/^\[|\]$/g, '');
  return isIP(address) === 0
    ? /(^|\.)(localhost|local|internal)$/.test(address)
    : addressKind(address) !== 'public';
};

/** A price by context length has a base and one tier (0.1.8). */
const priceFrom = (rates: ModelPrice): Price | undefined => {
  const at = (isLong: boolean): Price | undefined => {
    const rate = (name: string): number | undefined => {
      const given = rates[`${name}_mtok`];
      if (typeof given !== 'object') return given;
      return isLong ? given.tiers.at(-1)?.price : given.base;
    };
    const [input, output] = [rate('input'), rate('output')];
    if (input === undefined || output === undefined) return undefined;
    const cachedInput = rate('cache_read') ?? input;
    return { input, cachedInput, cacheWrite: rate('cache_write'), output };
  };
  const base = at(false);
  const tiered = rates['input_mtok'];
  const tokens = typeof tiered === 'object' ? tiered.tiers.at(-1)?.start : undefined;
  const price = tokens === undefined ? undefined : at(true);
  return base === undefined || tokens === undefined || price === undefined
    ? base
    : { ...base, above: { tokens, price } };
};

const lookUp = (model: string, providerId?: string): Price | undefined => {
  const options = providerId === undefined ? {} : { providerId };
  const found = table().calcPrice({ input_tokens: 0, output_tokens: 0 }, model, options);
  return found === null ? undefined : priceFrom(found.model_price);
};

/**
 * The list price of a model where `baseUrl` answers (null: anywhere); undefined where the table does
 * not know it, and for servers of the user's own.
 */
export const tablePrice = (model: string, baseUrl: string | null): Price | undefined => {
  const [prefix = '', ...rest] = model.split('/');
  if (baseUrl !== null && isLocal(new URL(baseUrl).hostname)) return undefined;
  if (rest.length > 0 && localProviders.has(prefix)) return undefined;
  const host = baseUrl === null ? undefined : table().findProvider({ providerApiUrl: baseUrl });
  const whole = host === undefined ? undefined : lookUp(model, host.id);
  if (whole !== undefined) return whole;
  const named = rest.length === 0 ? undefined : table().findProvider({ providerId: prefix });
  if (named !== undefined) return lookUp(rest.join('/'), named.id);
  return host === undefined ? lookUp(model) : undefined;
};

interface Place {
  /** What it is called where it answers, and where that is. */
  readonly model: string;
  readonly baseUrl: string | null;
  readonly provider: string;
}

export interface Priced {
  readonly prices: Readonly<Record<string, Price>>;
  readonly placeOf: (model: string) => Place;
}

/** The name by which the user gave it a price: as it is asked, after its provider, or alone. */
export const nameInPrices = ({ prices, placeOf }: Priced, name: string): string | undefined => {
  const { model, provider } = placeOf(name);
  return [name, `${provider}/${model}`, model].find(
    (each) =>
      Object.hasOwn(prices, each) && (each !== model || placeOf(model).provider === provider),
  );
};

/** Programs that run a model on a machine of the user's own. */
const ownPrograms: ReadonlySet<string> = new Set(['ollama', 'lmstudio', 'vllm']);
const free: Price = { input: 0, cachedInput: 0, output: 0 };

/** A gateway on an own address may call a paid model, and so does ollama for its cloud models. */
const costsNothing = ({ model, baseUrl, provider }: Place): boolean =>
  ownPrograms.has(provider) &&
  baseUrl !== null &&
  isLocal(new URL(baseUrl).hostname) &&
  !/[:-]cloud$/.test(model);

/** By `api.prices`, else by the table; a model on a machine of the user's own costs nothing. */
export const priceOf = (priced: Priced, name: string): Price | undefined => {
  const own = nameInPrices(priced, name);
  if (own !== undefined) return priced.prices[own];
  const place = priced.placeOf(name);
  return costsNothing(place) ? free : tablePrice(place.model, place.baseUrl);
};

/** The tokens of an assistant are sums of many calls, so only the base price fits. */
export const priceForAssistant = (
  { prices }: Pick<Priced, 'prices'>,
  model: string,
): Price | undefined => {
  const price = prices[model] ?? tablePrice(model, null);
  return price === undefined ? undefined : { ...price, above: undefined };
};
