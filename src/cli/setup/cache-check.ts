import { z } from 'zod';
import { type Priced, priceOf } from '../../actors/model/price-table.ts';
import type { Entry } from '../../actors/store/port.ts';
import { parseJson } from '../../machines/json.ts';
import type { CommandContext } from '../client/command-context.ts';
import { hasTasks, openTasks } from '../client/open-tasks.ts';
import { redactorFor } from '../client/redactor.ts';
import type { LoadedConfig } from '../config/config.ts';
import { askedPlace, placeOfModel, withChosenModel } from '../config/providers.ts';
import { pricesFrom } from '../config/settings.ts';
import { storeFor } from '../config/store.ts';
import type { Check } from './backend-checks.ts';

/** Of the newest, since older turns say nothing about the settings of today. */
const entriesAtMost = 5_000;
const turnsLookedAt = 10;
/** Providers keep no shorter beginning of a conversation. */
const shortestCached = 4_096;

const turnSchema = z.object({
  turn: z.number(),
  model: z.string(),
  ok: z.literal(true),
  input_tokens: z.number(),
  cached_tokens: z.number(),
});
type Turn = z.infer<typeof turnSchema>;

/** The first turn of an attempt has nothing to read. */
const turnIn = ({ type, data }: Entry): readonly Turn[] => {
  if (type !== 'api_call_complete') return [];
  const { data: turn } = turnSchema.safeParse(parseJson(data));
  return turn !== undefined && turn.turn > 1 ? [turn] : [];
};

/** Models whose last ten turns read nothing, although they could have. */
const modelsWithoutReads = (entries: readonly Entry[]): readonly string[] => {
  const byModel = new Map<string, Turn[]>();
  for (const turn of entries.flatMap(turnIn))
    if (turn.input_tokens >= shortestCached)
      byModel.set(turn.model, [...(byModel.get(turn.model) ?? []), turn].slice(-turnsLookedAt));
  return [...byModel].flatMap(([model, turns]) =>
    turns.length === turnsLookedAt && turns.every((turn) => turn.cached_tokens === 0)
      ? [model]
      : [],
  );
};

const newestEntries = async (
  { project, env }: CommandContext,
  { config }: LoadedConfig,
): Promise<readonly Entry[]> => {
  const choice = storeFor(config, project, env);
  if (!hasTasks(project, choice)) return [];
  const redact = redactorFor({ project, env }, config);
  const { store } = await openTasks(project, { kept: true, choice, redact, log: () => {} });
  try {
    const after = Math.max(0, (await store.lastSeq()) - entriesAtMost);
    return await store.read({ after, limit: entriesAtMost });
  } finally {
    store.close();
  }
};

/** Warns of models that would cost less with a cache, and read nothing from one. @throws StoreError */
export const cacheChecks = async (
  context: CommandContext,
  loaded: LoadedConfig,
): Promise<readonly Check[]> => {
  const chosen = withChosenModel(loaded, context.env);
  const priced: Priced = {
    prices: pricesFrom(chosen),
    placeOf: (name) => askedPlace(chosen, name),
  };
  return modelsWithoutReads(await newestEntries(context, loaded)).flatMap((model) => {
    const price = priceOf(priced, model);
    const { provider } = placeOfModel(chosen.config, model, context.env);
    const isOff = provider.type === 'anthropic' && provider.cache === 'off';
    if (price === undefined || price.cachedInput >= price.input || isOff) return [];
    return [
      {
        check: 'cache',
        status: 'note',
        detail: `${model}: its last ${turnsLookedAt} turns read nothing from a cache, so input costs $${price.input} and not $${price.cachedInput} for a million tokens; a gateway at providers.${provider.name}.base_url may change or drop what is sent, or turns are more than five minutes apart (Anthropic: set providers.${provider.name}.cache to 1h)`,
      },
    ];
  });
};
