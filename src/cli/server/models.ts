import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Assistants } from '../../actors/assistants/assistants.ts';
import type { AiSdkOptions } from '../../actors/model/ai-sdk.ts';
import type { Compat } from '../../actors/model/compat.ts';
import type { Model } from '../../actors/model/port.ts';
import { parseScript, type Script, scriptSchema } from '../../actors/model/script.ts';
import { createScriptedModel } from '../../actors/model/scripted.ts';
import { defaultTimeouts } from '../../actors/model/watchdog.ts';
import { hostOf } from '../../actors/network/addresses.ts';
import { parseWithProblems } from '../../http/schema-problems.ts';
import { isAssistantName } from '../../machines/agent/agent-context.ts';
import { secretsOf } from '../config/cloud-access.ts';
import { configFolder, type LoadedConfig, lineOf } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { linesOfJson } from '../config/json-lines.ts';
import {
  askedPlace,
  type ChosenConfig,
  keysIn,
  type ModelPlace,
  placeOfModel,
} from '../config/providers.ts';
import type { Config } from '../config/schema/config-schema.ts';

const readScriptOrNull = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
};

/** @throws what `problem` makes of a phrase that follows the path */
const readScript = (path: string, problem: (why: string) => ConfigError): Script => {
  const text = readScriptOrNull(path);
  if (text === null) throw problem(': the file cannot be read');
  const { fault } = linesOfJson(text);
  if (fault !== null) throw problem(`:${fault.line}: not JSON: ${fault.problem}`);
  const parsed = parseWithProblems(scriptSchema, JSON.parse(text));
  if (parsed.ok) return parsed.value;
  const [first] = parsed.problems;
  const at = first?.path ?? [];
  const line = lineOf(text, at);
  throw problem(
    `${line === null ? '' : `:${line}`}: ${at.join('.') || 'script'}: ${first?.problem}`,
  );
};

const scriptOf = (loaded: LoadedConfig) => {
  const { script } = loaded.config.api;
  if (script === undefined) return parseScript({ scripts: [] });
  const path = resolve(configFolder(loaded), script);
  return readScript(path, (why) => new ConfigError(`${loaded.file}: api.script: ${path}${why}`));
};

export const compatOf = ({ compat }: Config['api']): Compat => ({
  maxTokensField: compat.max_tokens_field ?? null,
  streamOptions: compat.stream_options,
  toolResultName: compat.tool_result_name,
  replyAfterTools: compat.reply_after_tools,
  textToolCalls: compat.text_tool_calls,
});

/** What speaks to a provider loads at the first call. */
const lateModel = (name: string, open: () => Promise<Model>): Model => {
  let opened: Promise<Model> | undefined;
  return {
    name,
    disclaimer: null,
    async *ask(request, signal) {
      opened ??= open();
      yield* (await opened).ask(request, signal);
    },
  };
};

type Fetch = NonNullable<AiSdkOptions['fetch']>;

const modelAt = (
  { provider, key }: ModelPlace,
  { api }: Config,
  {
    timeouts,
    openFetch,
  }: Required<Pick<AiSdkOptions, 'timeouts'>> & { readonly openFetch: () => Promise<Fetch> },
): Model | null => {
  const { name, type, baseURL, headers, cache, isDefault, access } = provider;
  if (key === null || baseURL === null) return null;
  return lateModel(hostOf(baseURL), async () => {
    const options = { apiKey: key, baseURL, headers, timeouts, fetch: await openFetch() };
    if (type !== 'openai') {
      const { createAiSdkModel } = await import('../../actors/model/ai-sdk.ts');
      const secrets = secretsOf(access);
      return createAiSdkModel({ ...options, type, cache, secrets, access: access ?? undefined });
    }
    const { createOpenAiModel } = await import('../../actors/model/openai/openai.ts');
    // What was set for the one provider of before is about no other one.
    const spoken = isDefault
      ? { protocol: api.protocol, compat: compatOf(api) }
      : { protocol: 'auto' as const };
    const marksCache = name === 'openrouter' ? cache !== 'off' : undefined;
    return createOpenAiModel({ ...options, ...spoken, marksCache });
  });
};

/** Of another name than it is asked by. */
const asked = (model: Model, name: string): Model => ({
  ...model,
  ask: (request, signal) => model.ask({ ...request, model: name }, signal),
});

/** Null for a model whose provider has no key; `scripted` needs none. @throws ConfigError */
export const modelsFor = (
  loaded: LoadedConfig,
  env: NodeJS.ProcessEnv,
  defaultProvider = () => loaded.defaultProvider,
): ((requested: string) => Model | null) => {
  const { config } = loaded;
  const { api, agent } = config;
  const scripted = createScriptedModel(scriptOf(loaded));
  const timeouts = {
    progressMs: Math.min(defaultTimeouts.progressMs, agent.idle_timeout_seconds * 1_000),
    ...(api.timeout_seconds === undefined ? {} : { turnMs: api.timeout_seconds * 1_000 }),
  };
  let fetch: Promise<Fetch> | undefined;
  const openFetch = () => {
    fetch ??= import('../../actors/model/provider-fetch.ts').then((late) =>
      late.createProviderFetch(env),
    );
    return fetch;
  };
  const keyOf = keysIn(config, env);
  /** Another key, which a login keeps meanwhile, makes another model. */
  const built = new Map<string, { readonly key: string | null; readonly model: Model | null }>();
  return (requested) => {
    if (api.backend === 'scripted' || requested === 'scripted') return scripted;
    const place = placeOfModel(config, requested, env, keyOf, defaultProvider());
    const { name } = place.provider;
    const known = built.get(name);
    const model =
      known?.key === place.key ? known.model : modelAt(place, config, { timeouts, openFetch });
    built.set(name, { key: place.key, model });
    return model === null ? null : asked(model, place.model);
  };
};

/** Describes the default backend in one line. `ok` is false when runs would be refused. */
export const modelNote = (
  chosen: ChosenConfig,
  {
    selectModel,
    assistants,
  }: { selectModel: (requested: string) => Model | null; assistants: Assistants },
): { readonly ok: boolean; readonly detail: string; readonly assistant?: string } => {
  const { api } = chosen.config;
  const { missing, remedy, refusal, keysProblem } = askedPlace(chosen, api.provider_model);
  if (isAssistantName(api.backend)) {
    const problem = assistants.problem(api.backend);
    const detail = `${assistants.of(api.backend)?.label ?? api.backend}, by api.backend`;
    return problem === null
      ? { ok: true, detail, assistant: api.backend }
      : { ok: false, detail: `none: ${detail}, but ${problem}` };
  }
  if (refusal !== null && api.backend !== 'scripted')
    return {
      ok: false,
      detail: `none: ${refusal}; name another: agent config set api.provider_model <provider>/<model>`,
    };
  const model = selectModel(api.provider_model);
  if (model !== null)
    return {
      ok: true,
      detail:
        model.disclaimer === null
          ? `${api.provider_model} at ${model.name}`
          : 'scripted (the built-in fake model; no language model is called)',
    };
  const other = api.backend === 'auto' ? assistants.loggedIn() : null;
  if (other !== null)
    return {
      ok: true,
      detail: `${other}, which is logged in (${missing} is not set)`,
      assistant: other,
    };
  const nobody = api.backend === 'auto' ? ' and no coding assistant is logged in' : '';
  return {
    ok: false,
    detail: `none: ${keysProblem ?? `${missing} is not set${nobody}; ${remedy}`}; until then runs are refused unless they name --model scripted`,
  };
};
