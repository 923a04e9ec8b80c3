import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { selectModel } from '../../actors/model/credentials.ts';
import { createOpenAiModel } from '../../actors/model/openai.ts';
import type { Model } from '../../actors/model/port.ts';
import { parseScript } from '../../actors/model/script.ts';
import { createScriptedModel } from '../../actors/model/scripted.ts';
import { ConfigError } from '../config.ts';
import type { Config } from '../config-schema.ts';
import { keyVariable } from '../settings.ts';

/** Takes the provider's key out of the environment, so that no child process can inherit it (rule R24). */
export const takeKey = (env: NodeJS.ProcessEnv): string | null => {
  const key = env[keyVariable] || null;
  delete env[keyVariable];
  return key;
};

const scriptOf = ({ api }: Config) => {
  if (api.script === undefined) return parseScript({ scripts: [] });
  try {
    return parseScript(JSON.parse(readFileSync(resolve(api.script), 'utf8')));
  } catch (cause) {
    throw new ConfigError(`api.script: ${api.script}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
};

/** Chooses by name: `scripted`, or whatever the provider serves, when there is a key for it. */
export const modelsFor = (config: Config, key: string | null): ((requested: string) => Model | null) => {
  const { api } = config;
  const scripted = createScriptedModel(scriptOf(config));
  const baseURL = api.mode === 'proxy' ? (api.proxy.base_url ?? api.base_url) : api.base_url;
  const timeouts = api.timeout_seconds === undefined ? {} : { timeouts: { turnMs: api.timeout_seconds * 1_000 } };
  const remote = key === null ? null : createOpenAiModel({ protocol: api.protocol, apiKey: key, baseURL, ...timeouts });
  return (requested) => (api.backend === 'scripted' ? scripted : selectModel({ scripted, remote }, requested));
};

export const modelNote = (config: Config, selectModel: (requested: string) => Model | null): string => {
  const model = selectModel(config.api.provider_model);
  if (model === null) return `none: ${keyVariable} is not set; runs are refused unless they name --model scripted`;
  return model.disclaimer === null
    ? `${config.api.provider_model} at ${model.name}`
    : 'scripted (the built-in fake model; no language model is called)';
};
