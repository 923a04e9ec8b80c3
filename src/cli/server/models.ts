import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Assistants } from '../../actors/assistants/assistants.ts';
import type { Compat } from '../../actors/model/compat.ts';
import { createOpenAiModel } from '../../actors/model/openai.ts';
import type { Model } from '../../actors/model/port.ts';
import { parseScript, type Script, scriptSchema } from '../../actors/model/script.ts';
import { createScriptedModel } from '../../actors/model/scripted.ts';
import { selectModel } from '../../actors/model/select-model.ts';
import { defaultTimeouts } from '../../actors/model/watchdog.ts';
import { parseWithProblems } from '../../http/schema-problems.ts';
import { isAssistantName } from '../../machines/agent/agent-context.ts';
import { configFolder, type LoadedConfig, lineOf } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { linesOfJson } from '../config/json-lines.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { keyVariable } from '../config/settings.ts';

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

export const baseUrlOf = ({ api }: Config): string =>
  api.mode === 'proxy' ? (api.proxy.base_url ?? api.base_url) : api.base_url;

export const compatOf = ({ api: { compat } }: Config): Compat => ({
  maxTokensField: compat.max_tokens_field ?? null,
  streamOptions: compat.stream_options,
  toolResultName: compat.tool_result_name,
  replyAfterTools: compat.reply_after_tools,
  textToolCalls: compat.text_tool_calls,
});

/** Without a key, only `scripted` exists. */
export const modelsFor = (
  loaded: LoadedConfig,
  key: string | null,
): ((requested: string) => Model | null) => {
  const { config } = loaded;
  const { api, agent } = config;
  const scripted = createScriptedModel(scriptOf(loaded));
  const baseURL = baseUrlOf(config);
  const timeouts = {
    progressMs: Math.min(defaultTimeouts.progressMs, agent.idle_timeout_seconds * 1_000),
    ...(api.timeout_seconds === undefined ? {} : { turnMs: api.timeout_seconds * 1_000 }),
  };
  const { protocol } = api;
  const compat = compatOf(config);
  const remote =
    key === null ? null : createOpenAiModel({ protocol, compat, apiKey: key, baseURL, timeouts });
  return (requested) =>
    api.backend === 'scripted' ? scripted : selectModel({ scripted, remote }, requested);
};

/** Describes the default backend in one line. `ok` is false when runs would be refused. */
export const modelNote = (
  { api }: Config,
  {
    selectModel,
    assistants,
  }: { selectModel: (requested: string) => Model | null; assistants: Assistants },
): { readonly ok: boolean; readonly detail: string; readonly assistant?: string } => {
  if (isAssistantName(api.backend)) {
    const problem = assistants.problem(api.backend);
    const detail = `${assistants.of(api.backend)?.label ?? api.backend}, by api.backend`;
    return problem === null
      ? { ok: true, detail, assistant: api.backend }
      : { ok: false, detail: `none: ${detail}, but ${problem}` };
  }
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
      detail: `${other}, which is logged in (${keyVariable} is not set)`,
      assistant: other,
    };
  const nobody = api.backend === 'auto' ? ' and no coding assistant is logged in' : '';
  return {
    ok: false,
    detail: `none: ${keyVariable} is not set${nobody}; runs are refused unless they name --model scripted`,
  };
};
