import type { AskedPlace } from '../../actors/engine/attempts/settings.ts';
import type { AiSdkOptions } from '../../actors/model/ai-sdk.ts';
import type { CloudAccess } from '../../actors/model/ai-sdk-packages.ts';
import { closest } from '../output/closest.ts';
import { keptKey } from '../server/secrets/kept-keys.ts';
import { readPrivateText } from '../server/secrets/private-files.ts';
import { choosingKeys } from '../words/other-tools.ts';
import { UsageError } from '../words/usage-error.ts';
import { bedrockIn, cloudAccess, cloudAddress, signingVariables } from './cloud-access.ts';
import type { LoadedConfig } from './config.ts';
import { ConfigError } from './config-error.ts';
import { hostRefusal, modelRefusal } from './policy.ts';
import { type Config, configSchema } from './schema/config-schema.ts';

/** A provider of models, built in or configured. */
export interface Provider {
  readonly name: string;
  readonly type: 'openai' | AiSdkOptions['type'];
  readonly baseURL: string | null;
  /** Variables that may hold the key: the first that is set counts. None: it needs no key. */
  readonly variables: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly cache: NonNullable<AiSdkOptions['cache']>;
  /** `api.protocol` and `api.compat` are about it. */
  readonly isDefault: boolean;
  /** The one that is asked when no model is named. */
  readonly defaultModel: string | null;
  /** Credentials of a cloud that count without a key. */
  readonly access: CloudAccess | null;
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
  bedrock: {
    type: 'bedrock',
    baseURL: null,
    variables: ['AWS_BEARER_TOKEN_BEDROCK'],
    defaultModel: 'global.anthropic.claude-sonnet-4-5-20250929-v1:0',
  },
  vertex: {
    type: 'vertex',
    baseURL: 'https://aiplatform.googleapis.com/v1',
    variables: ['GOOGLE_VERTEX_API_KEY'],
    defaultModel: 'gemini-2.5-pro',
  },
  ollama: openAi('http://127.0.0.1:11434/v1', []),
  lmstudio: openAi('http://127.0.0.1:1234/v1', []),
  vllm: openAi('http://127.0.0.1:8000/v1', []),
};

/** Of all that are built in. */
export const keyVariables: readonly string[] = [
  ...Object.values(known).flatMap(({ variables }) => variables),
  ...signingVariables,
];

/** The ones that `auto` chooses from, in this order. */
const chosenFrom = ['openai', 'anthropic', 'google', 'openrouter'];
/** It needs no key, and the openai package wants one. */
const noKey = 'none';
/** Requests are signed, or have a token of the cloud. */
const signed = '';

/** @throws ConfigError */
const withVersion = (variable: string, url: string, version: string): string => {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new ConfigError(`${variable}: expected an address like https://host/path`);
  return new RegExp(`/${version}/?$`).test(url) ? url : `${url.replace(/\/$/, '')}/${version}`;
};

/** As ollama reads it: `host`, `:port`, `0.0.0.0:port`, `http://host:port`; undefined if it cannot be read. */
const ollamaAt = (given: string): string | undefined => {
  const text = given.trim();
  const [, scheme = 'http', rest = ''] = /^(?:(https?):\/\/)?(.*)$/s.exec(text) ?? [];
  const address = `${scheme}://${rest.startsWith(':') ? '127.0.0.1' : ''}${rest}`;
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  if (['0.0.0.0', '[::]'].includes(url.hostname)) url.hostname = '127.0.0.1';
  if (url.port === '' && !text.startsWith(scheme)) url.port = '11434';
  return `${url.origin}/v1`;
};

/** Addresses that the programs of Anthropic, Google and ollama take, too, there without a version. */
const addressIn = (name: string, env: NodeJS.ProcessEnv): string | undefined => {
  const [anthropic, gemini] = [env['ANTHROPIC_BASE_URL'], env['GEMINI_BASE_URL']];
  if (name === 'ollama' && env['OLLAMA_HOST']) return ollamaAt(env['OLLAMA_HOST']);
  if (name === 'anthropic' && anthropic) return withVersion('ANTHROPIC_BASE_URL', anthropic, 'v1');
  return name === 'google' && gemini ? withVersion('GEMINI_BASE_URL', gemini, 'v1beta') : undefined;
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
  const { type = builtIn?.type ?? 'openai-compatible', base_url, key_env } = own ?? {};
  const isDefault = name === 'openai' && base_url === undefined;
  const inEnv = addressIn(name, env) ?? cloudAddress(type, env);
  // Its key goes to nobody else: azure and others have no address until one is set.
  const ownAddress = builtIn === undefined ? known[type]?.baseURL : builtIn.baseURL;
  const baseURL = base_url ?? (isDefault ? baseUrlOf(config) : (inEnv ?? ownAddress)) ?? null;
  const cloud = type === 'bedrock' || type === 'vertex' ? known[type] : undefined;
  return {
    name,
    type: type === 'openai-compatible' ? 'openai' : type,
    isDefault,
    baseURL,
    variables: key_env === undefined ? ((builtIn ?? cloud)?.variables ?? []) : [key_env],
    headers: own?.headers ?? {},
    cache: own?.cache ?? 'auto',
    defaultModel: builtIn?.defaultModel ?? null,
    access: type === 'openai-compatible' ? null : cloudAccess(type, baseURL, env),
  };
};

/** `from`: the file or the variable that holds it, or where `agent auth login` keeps it. */
export interface FoundKey {
  readonly key: string;
  readonly source: 'key_file' | 'variable' | 'kept' | 'not_needed';
  readonly from: string | null;
}

/** Why a text cannot be a key; null: it can. It is not repeated. */
export const keyFault = (key: string): string | null => {
  if (key === '') return 'it is empty';
  if (/[\r\n]/.test(key)) return 'there are several lines; give the key alone';
  const [, named] = /^(?:export\s+)?([A-Z][A-Z0-9_]*)=/.exec(key) ?? [];
  if (named !== undefined) return `give the key alone, without ${named}=`;
  if (/^["']|["']$/.test(key)) return 'give the key alone, without quotes';
  return /^[\x21-\x7e]+$/.test(key)
    ? null
    : 'a key has no spaces and only characters of ASCII; copy it again';
};

const accessNames = { aws: 'AWS_ACCESS_KEY_ID', google: 'GOOGLE_APPLICATION_CREDENTIALS' } as const;

/** Null where it has none yet. */
const findKey = (
  { name, variables, access }: Pick<Provider, 'name' | 'variables' | 'access'>,
  env: NodeJS.ProcessEnv,
): FoundKey | null => {
  const from = variables.find((variable) => env[variable]?.trim());
  const set = from === undefined ? undefined : env[from]?.trim();
  if (from !== undefined && set !== undefined) return { key: set, source: 'variable', from };
  const kept = keptKey(env, name);
  if (kept !== null) return { key: kept, source: 'kept', from: null };
  // These sign each request.
  if (access !== null) return { key: signed, source: 'variable', from: accessNames[access.cloud] };
  return variables.length === 0 ? { key: noKey, source: 'not_needed', from: null } : null;
};

/** Why the rules of `policy.only` leave a provider out; null: they do not. */
const providerRefusal = ({ policy }: Config, { name, baseURL }: Provider): string | null =>
  modelRefusal({ ...policy, only: { ...policy.only, models: undefined } }, name, null) ??
  (baseURL === null ? null : hostRefusal(policy, baseURL));

type FindKey = (provider: Provider) => FoundKey | null;
type KeyOf = (provider: Provider) => string | null;

/**
 * The files of configured providers are read at once, and not again; kept keys after each change.
 * @throws ConfigError
 */
export const keySources = (config: Config, env: NodeJS.ProcessEnv): FindKey => {
  const files = new Map(
    Object.entries(config.providers).flatMap(([name, { key_file: from }]) => {
      if (from === undefined) return [];
      const place = `providers.${name}.key_file`;
      const key = readPrivateText(from, place).trim();
      const fault = keyFault(key);
      if (fault !== null) throw new ConfigError(`${place}: ${from} holds no key: ${fault}`);
      return [[name, { key, source: 'key_file', from }] as const];
    }),
  );
  // Who may not be asked has no key.
  return (provider) =>
    providerRefusal(config, provider) === null
      ? (files.get(provider.name) ?? findKey(provider, env))
      : null;
};

/** @throws ConfigError */
export const keysIn = (config: Config, env: NodeJS.ProcessEnv): KeyOf => {
  const find = keySources(config, env);
  return (provider) => find(provider)?.key ?? null;
};

/** Those that are built in, then the others that are configured. */
const providerNames = (config: Config): readonly string[] => [
  ...new Set([...Object.keys(known), ...Object.keys(config.providers)]),
];

/** A forge needs a key, too; it is no provider of models. */
export const forgeKeys = {
  github: { name: 'github', variables: ['GITHUB_TOKEN', 'GH_TOKEN'] },
  gitea: { name: 'gitea', variables: ['GITEA_TOKEN'] },
} as const;

/** Where the key of each provider, and of the forge, is found; null: nowhere. @throws ConfigError */
export const keyPlaces = (
  config: Config,
  env: NodeJS.ProcessEnv,
): readonly (Pick<Provider, 'name' | 'variables'> & { readonly found: FoundKey | null })[] => {
  const find = keySources(config, env);
  const key = forgeKeys[config.forge.type];
  const ofForge = { ...key, found: findKey({ ...key, access: null }, env) };
  const ofModels = providerNames(config).flatMap((name) => {
    const provider = providerOf(config, name, env);
    return provider === null
      ? []
      : [{ name, variables: provider.variables, found: find(provider) }];
  });
  return [...ofModels, ofForge];
};

/** @throws UsageError for a name that no provider has, and for one that needs no key */
export const requireKeyed = (config: Config, name: string): void => {
  if (Object.hasOwn(forgeKeys, name)) return;
  const provider = providerOf(config, name, {});
  if (provider === null) {
    const names = [...providerNames(config), ...Object.keys(forgeKeys)];
    const meant = closest(name, names);
    const advice =
      meant === null ? `the providers are ${names.join(', ')}` : `did you mean ${meant}?`;
    throw new UsageError(`there is no provider ${name}; ${advice}`);
  }
  if (Object.hasOwn(known, name) && provider.variables.length === 0)
    throw new UsageError(
      `${name} needs no key; for a server of yours that asks for one, set providers.<name>.base_url and log in to <name>`,
    );
};

/** Who has a model, and what it is called there. */
export interface ModelPlace {
  readonly provider: Provider;
  readonly model: string;
  readonly key: string | null;
}

/** The one of models whose name has no provider: the one of before while its key is there. */
const defaultProvider = (
  config: Config,
  env: NodeJS.ProcessEnv,
  keyOf: KeyOf,
  before: string,
): string => {
  if (hasOwnAddress(config)) return 'openai';
  const hasKey = (name: string): boolean => {
    const provider = providerOf(config, name, env);
    return provider !== null && keyOf(provider) !== null;
  };
  // One on this machine stands back when a key comes.
  const isLocal = known[before]?.variables.length === 0;
  return (isLocal ? chosenFrom : [before, ...chosenFrom]).find(hasKey) ?? before;
};

/** @throws ConfigError when a key cannot be read, without `keyOf` */
export const placeOfModel = (
  config: Config,
  requested: string,
  env: NodeJS.ProcessEnv,
  keyOf = keysIn(config, env),
  before = 'openai',
): ModelPlace => {
  const [, first = '', rest = ''] = /^([^/]+)\/(.+)$/s.exec(requested) ?? [];
  // A proxy or a server of one's own has names with a slash, too.
  const isWhole = hasOwnAddress(config) && Object.keys(config.providers).length === 0;
  const named = isWhole ? null : providerOf(config, first, env);
  const provider = named ?? providerOf(config, defaultProvider(config, env, keyOf, before), env);
  if (provider === null) throw new Error('the default provider is built in');
  const model = named === null ? requested : rest;
  const isAllowed = modelRefusal(config.policy, provider.name, model) === null;
  return { provider, model, key: isAllowed ? keyOf(provider) : null };
};

/**
 * Asks whether a name that goes whole to a provider was meant for another one, as `antropic/x` and
 * `gemini/x`; null: no doubt. OpenRouter and addresses of one's own have names with a slash.
 */
const meantProvider = (config: Config, requested: string, asked: string): string | null => {
  const [, first = ''] = /^([^/]+)\/./s.exec(requested) ?? [];
  if (first === '' || asked === 'openrouter' || hasOwnAddress(config)) return null;
  const ofKey = `${first.toUpperCase()}_API_KEY`;
  const meant =
    closest(first, providerNames(config)) ??
    Object.keys(known).find((name) => known[name]?.variables.includes(ofKey));
  return meant === undefined ? null : `there is no provider ${first}; did you mean ${meant}?`;
};

const isSecretHeader = (name: string): boolean =>
  /key|token|secret|passw|authorization/i.test(name);

/** Keys of configured providers, also kept ones, and headers that hold one. @throws ConfigError */
export const providerSecrets = (config: Config, env: NodeJS.ProcessEnv): readonly string[] => {
  const keyOf = keysIn(config, env);
  return Object.entries(config.providers).flatMap(([name, { headers }]) => {
    const provider = providerOf(config, name, env);
    const key = provider === null ? null : keyOf(provider);
    const secret = Object.entries(headers).filter(([header]) => isSecretHeader(header));
    return [...(key && key !== noKey ? [key] : []), ...secret.map(([, value]) => value)];
  });
};

/** For a cloud more than a key may be missing. */
const insteadOf: Partial<Record<Provider['type'], string>> = {
  bedrock:
    'AWS_REGION with AWS_BEARER_TOKEN_BEDROCK, or with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,',
  vertex:
    'GOOGLE_VERTEX_API_KEY, or GOOGLE_VERTEX_PROJECT, GOOGLE_VERTEX_LOCATION and GOOGLE_APPLICATION_CREDENTIALS,',
};

/** What is not set: the key, or the address. */
const missingOf = ({ name, type, baseURL, variables }: Provider): string =>
  insteadOf[type] ??
  (baseURL === null ? `providers.${name}.base_url` : (variables[0] ?? 'OPENAI_API_KEY'));

/** What to do where nothing was chosen. */
export const anyKeyRemedy = `keep the key of your provider (agent auth login anthropic), set one of ${choosingKeys.join(', ')} where the server starts, log in to a coding assistant (codex login, claude auth login), or start ollama or LM Studio`;

const remedyOf = (provider: Provider, missing: string, isNamed: boolean): string => {
  const { name } = provider;
  if (missing === 'OPENAI_API_KEY' && !isNamed) return anyKeyRemedy;
  if (missing.startsWith('providers.'))
    return `set the address of ${name}: agent config set ${missing} <address>`;
  return `keep a key with 'agent auth login ${name}', set it where the server starts, or name a model of another provider`;
};

export type ChosenConfig = Pick<LoadedConfig, 'config' | 'defaultProvider' | 'keysProblem'>;

/** Who has a model, as the configuration and the choice of `withChosenModel` say it. */
export const askedPlace = (
  { config, defaultProvider: chosen, keysProblem: problem = () => null }: ChosenConfig,
  requested: string,
): AskedPlace => {
  const { provider, model } = placeOfModel(config, requested, {}, ({ name }) =>
    name === chosen ? '' : null,
  );
  const { name, type, baseURL } = provider;
  // Its regions have one price in the table.
  const baseUrl = baseURL ?? (type === 'bedrock' ? bedrockIn('us-east-1') : null);
  const missing = missingOf(provider);
  const isNamed = model !== requested;
  const refusal =
    modelRefusal(config.policy, name, model) ??
    providerRefusal(config, provider) ??
    (isNamed ? null : meantProvider(config, requested, name));
  const remedy = remedyOf(provider, missing, isNamed);
  const keysProblem = problem();
  return { model, baseUrl, provider: name, missing, remedy, keysProblem, refusal };
};

const reasons: Readonly<Record<FoundKey['source'], (found: FoundKey) => string>> = {
  variable: ({ from }) => `${from} is set`,
  key_file: ({ from }) => `its key is in ${from}`,
  kept: () => 'agent auth login keeps its key',
  not_needed: () => 'it needs no key',
};

/** Says which model a key has chosen, and how to choose another. */
const choiceText = (model: string, found: FoundKey, backend: Config['api']['backend']): string => {
  const assistant =
    backend === 'auto' ? ', or an assistant: agent config set api.backend claude (or codex)' : '';
  return `agents use ${model}, since ${reasons[found.source](found)}; to use another: agent config set api.provider_model <provider>/<model>${assistant}`;
};

/**
 * Names the model that agents use after the provider whose key is there, where the configuration
 * names none, else `local`; and the provider of names without one. `before`: the provider of a server
 * that runs.
 * @throws ConfigError
 */
export const withChosenModel = (
  loaded: LoadedConfig,
  env: NodeJS.ProcessEnv,
  {
    find = keySources(loaded.config, env),
    before,
    local = null,
  }: {
    readonly find?: FindKey;
    readonly before?: string;
    readonly local?: string | null;
  } = {},
): LoadedConfig => {
  const { config } = loaded;
  const { provider_model: named, backend } = config.api;
  const keyOf: KeyOf = (provider) => find(provider)?.key ?? null;
  const { provider } = placeOfModel(config, shippedApi.provider_model, env, keyOf, before);
  const found = find(provider);
  const isDefault = provider.name === 'openai';
  const isAuto = ['auto', 'builtin'].includes(backend);
  const isKeyless = isDefault && found === null && !hasOwnAddress(config);
  const ofLocal = local?.split('/', 1)[0] ?? '';
  const isLocal = isKeyless || provider.name === ofLocal;
  if (isLocal && local !== null && isAuto && named === shippedApi.provider_model)
    return {
      ...loaded,
      defaultProvider: ofLocal,
      config: { ...config, api: { ...config.api, provider_model: local } },
    };
  if (isDefault && found?.source !== 'kept') return loaded;
  const chosen = isDefault ? loaded : { ...loaded, defaultProvider: provider.name };
  const isBare = placeOfModel(config, named, env, keyOf, before).model === named;
  const isUnnamed = named === shippedApi.provider_model && !isDefault;
  if (!isBare || !isAuto || (isUnnamed && provider.defaultModel === null)) return chosen;
  const provider_model =
    isDefault || named !== shippedApi.provider_model
      ? named
      : `${provider.name}/${provider.defaultModel}`;
  const model = provider_model === named ? `${named} of ${provider.name}` : provider_model;
  const choice = found === null ? {} : { choice: choiceText(model, found, backend) };
  return { ...chosen, ...choice, config: { ...config, api: { ...config.api, provider_model } } };
};
