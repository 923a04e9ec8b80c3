import { servedModels } from '../../actors/model/probe.ts';
import { createProviderFetch } from '../../actors/model/provider-fetch.ts';
import { placeOfModel } from '../config/providers.ts';
import type { Config } from '../config/schema/config-schema.ts';

/** The servers of models that people have on their own machine, in the order of the choice. */
const localProviders = ['ollama', 'lmstudio'];
const answerMs = 1_000;

/** They answer no prompt. */
const isForVectors = (model: string): boolean => /embed|rerank/i.test(model);

/**
 * The first model of the first local server that answers now: `ollama/qwen3:8b`; null without one.
 * Never rejects.
 */
export const findLocalModel = async (
  config: Config,
  env: NodeJS.ProcessEnv,
): Promise<string | null> => {
  if (config.api.backend !== 'auto') return null;
  const fetch = createProviderFetch(env);
  const firsts = localProviders.map(async (name) => {
    const { provider, key } = placeOfModel(config, `${name}/any`, env);
    const { baseURL } = provider;
    if (provider.name !== name || baseURL === null || key === null) return null;
    const models = await servedModels({ baseURL, apiKey: key, fetch, waitMs: answerMs });
    const first = models?.find((model) => !isForVectors(model));
    return first === undefined ? null : `${name}/${first}`;
  });
  const found = await Promise.all(firsts.map((each) => each.catch(() => null)));
  return found.find((each) => each !== null) ?? null;
};
