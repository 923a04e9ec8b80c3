import type { AskedPlace } from '../../actors/engine/attempts/settings.ts';
import type { AiSdkOptions } from '../../actors/model/ai-sdk.ts';
import { readPrivateText } from '../server/secrets/private-files.ts';
import type { LoadedConfig } from './config.ts';
import { type Config, configSchema } from './schema/config-schema.ts';

/** A provider of models, built in or configured. */
export interface Provider {
  readonly name: string;
  readonly type: 'openai' | AiSdkOptions['type'];
  readonly baseURL: string | null;
  /** Variables that may hold the key: the first that is set counts. None: it needs no key. */
  readonly variables: readonly string[];
  readonly keyFile: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly cache: NonNullable<AiSdkOptions['cache']>;
  /** `api.protocol` and `api.compat` are about it. */
  readonly isDefault: boolean;
  /** The one that is asked when no model is named. */
  readonly defaultModel: string | null;
}

type Known = Pick<Provider, 'type' | 'baseURL' | 'variables' | 'defaultModel'>;

const openAi = (
  baseURL: string | null,
  variables: readonly string[],
  defaultModel: string | null = null,
): Known => ({ type: 'openai', baseURL, variables, defaultModel });

const known: Readonly<Record<string, Known>> = {
  openai: openAi('https://api.openai.com/v1', ['OPENAI_API_KEY'], 'gpt-5.1'),
  anthropic: {
    type: 'anthropic',
    baseURL: 'https://api.anthropic.com/v1',
    variables: ['ANTHROPIC_API_KEY'],
    defaultModel: 'claude-sonnet-4-5',
  },
  google: {
    type: 'google',
    baseURL: 'https://generativelanguage.googleapis.com/v1beta',
    variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    defaultModel: 'gemini-2.5-pro',
  },
  openrouter: openAi(
    'https://openrouter.ai/api/v1',
    ['OPENROUTER_API_KEY'],
    'anthropic/claude-sonnet-4.5',
  ),
  deepseek: openAi('https://api.deepseek.com/v1', ['DEEPSEEK_API_KEY']),
  groq: openAi('https://api.groq.com/openai/v1', ['GROQ_API_KEY']),
  mistral: openAi('https://api.mistral.ai/v1', ['MISTRAL_API_KEY']),
  xai: openAi('https://api.x.ai/v1', ['XAI_API_KEY']),
  azure: openAi(null, ['AZURE_OPENAI_API_KEY']),
  ollama: openAi('http://127.0.0.1:11434/v1', []),
  lmstudio: openAi('http://127.0.0.1:1234/v1', []),
  vllm: openAi('http://127.0.0.1:8000/v1', []),
};

/** Of all that are built in. */
export const keyVariables: readonly string[] = Object.values(known).flatMap(
  ({ variables }) => variables,
);

/** The ones that `auto` chooses from, in this order. */
const chosenFrom = ['openai', 'anthropic', 'google', 'openrouter'];
/** It needs no key, and the openai package wants one. */
const noKey = 'none';

const withVersion = (url: string, version: string): string =>
  new RegExp(`/${version}/?$`).test(url) ? url : `${url.replace(/\/$/, '')}/${version}`;

/** Addresses that the programs of Anthropic and Google take, too, there without a version. */
const addressIn = (name: string, env: NodeJS.ProcessEnv): string | undefined => {
  const [anthropic, gemini] = [env['ANTHROPIC_BASE_URL'], env['GEMINI_BASE_URL']];
  if (name === 'anthropic' && anthropic) return withVersion(anthropic, 'v1');
  return name === 'google' && gemini ? withVersion(gemini, 'v1beta') : undefined;
};

/** The address of models whose name has no provider. */
export const baseUrlOf = ({ api }: Config): string =>
  api.mode === 'proxy' ? (api.proxy.base_url ?? api.base_url) : api.base_url;

const shippedApi = configSchema.parse({}).api;
const hasOwnAddress = (config: Config): boolean => baseUrlOf(config) !== shippedApi.base_url;

const providerOf = (config: Config, name: string, env: NodeJS.ProcessEnv): Provider | null => {
  const own = Object.hasOwn(config.providers, name) ? config.providers[name] : undefined;
  const builtIn = Object.hasOwn(known, name) ? known[name] : undefined;
  if (own === undefined && builtIn === undefined) return null;
  const { type = builtIn?.type ?? 'openai', base_url, key_env, key_file } = own ?? {};
  const isDefault = name === 'openai' && base_url === undefined;
  const address = isDefault ? baseUrlOf(config) : (addressIn(name, env) ?? builtIn?.baseURL);
  return {
    name,
    type: type === 'openai-compatible' ? 'openai' : type,
    isDefault,
    baseURL: base_url ?? address ?? known[type]?.baseURL ?? null,
    variables: key_env === undefined ? (builtIn?.variables ?? []) : [key_env],
    keyFile: key_file ?? null,
    headers: own?.headers ?? {},
    cache: own?.cache ?? 'auto',
    defaultModel: builtIn?.defaultModel ?? null,
  };
};

/** Null where it has none yet. @throws ConfigError when its file cannot be read */
const readKey = ({ name, keyFile, variables }: Provider, env: NodeJS.ProcessEnv): string | null => {
  if (keyFile !== null)
    return readPrivateText(keyFile, `providers.${name}.key_file`).trim() || null;
  if (variables.length === 0) return noKey;
  return variables.map((variable) => env[variable]).find(Boolean) ?? null;
};

type KeyOf = (provider: Provider) => string | null;

/** The files of configured providers are read at once, and not again. @throws ConfigError */
export const keysIn = (config: Config, env: NodeJS.ProcessEnv): KeyOf => {
  const own = new Map(
    Object.keys(config.providers).map((name) => {
      const provider = providerOf(config, name, env);
      return [name, provider === null ? null : readKey(provider, env)];
    }),
  );
  return (provider) => own.get(provider.name) ?? readKey({ ...provider, keyFile: null }, env);
};

/** Who has a model, and what it is called there. */
export interface ModelPlace {
  readonly provider: Provider;
  readonly model: string;
  readonly key: string | null;
}

/** The one of models whose name has no provider. */
const defaultProvider = (config: Config, env: NodeJS.ProcessEnv, keyOf: KeyOf): string =>
  (hasOwnAddress(config) ? [] : chosenFrom).find((name) => {
    const provider = providerOf(config, name, env);
    return provider !== null && keyOf(provider) !== null;
  }) ?? 'openai';

/** @throws ConfigError when a key cannot be read, without `keyOf` */
export const placeOfModel = (
  config: Config,
  requested: string,
  env: NodeJS.ProcessEnv,
  keyOf = keysIn(config, env),
): ModelPlace => {
  const [, first = '', rest = ''] = /^([^/]+)\/(.+)$/s.exec(requested) ?? [];
  // A proxy or a server of one's own has names with a slash, too.
  const isWhole = hasOwnAddress(config) && Object.keys(config.providers).length === 0;
  const named = isWhole ? null : providerOf(config, first, env);
  const provider = named ?? providerOf(config, defaultProvider(config, env, keyOf), env);
  if (provider === null) throw new Error('the default provider is built in');
  return { provider, model: named === null ? requested : rest, key: keyOf(provider) };
};

const isSecretHeader = (name: string): boolean =>
  /key|token|secret|passw|authorization/i.test(name);

/** Keys of configured providers, and headers that hold one. @throws ConfigError */
export const providerSecrets = (config: Config, env: NodeJS.ProcessEnv): readonly string[] => {
  const keyOf = keysIn(config, env);
  return Object.entries(config.providers).flatMap(([name, { headers }]) => {
    const provider = providerOf(config, name, env);
    const key = provider === null ? null : keyOf(provider);
    const secret = Object.entries(headers).filter(([header]) => isSecretHeader(header));
    return [...(key === null || key === noKey ? [] : [key]), ...secret.map(([, value]) => value)];
  });
};

/** Who has a model, as the configuration alone says it. */
export const askedPlace = (config: Config, requested: string): AskedPlace => {
  const { provider, model } = placeOfModel(config, requested, {}, () => null);
  const { baseURL, variables } = provider;
  return { model, baseUrl: baseURL, variable: variables[0] ?? 'OPENAI_API_KEY' };
};

/** The variable that would hold the key for a model. */
export const variableOf = (config: Config, requested: string): string =>
  askedPlace(config, requested).variable;

/**
 * Names the model that agents use after the provider whose key is there, where the configuration
 * names none.
 */
export const withChosenModel = (loaded: LoadedConfig, env: NodeJS.ProcessEnv): LoadedConfig => {
  const { config } = loaded;
  if (!['auto', 'builtin'].includes(config.api.backend)) return loaded;
  const { provider, model } = placeOfModel(config, config.api.provider_model, env);
  if (provider.name === 'openai' || model !== shippedApi.provider_model) return loaded;
  const provider_model = `${provider.name}/${provider.defaultModel}`;
  return { ...loaded, config: { ...config, api: { ...config.api, provider_model } } };
};
