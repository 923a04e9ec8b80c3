import type { AskedPlace } from '../../actors/engine/attempts/settings.ts';
import { type Compat, maxTokensFieldAt } from '../../actors/model/compat.ts';
import { contextWindowOf } from '../../actors/model/context-windows.ts';
import {
  type Findings,
  type ProtocolProbe,
  probeModel,
  probeOwnProtocol,
} from '../../actors/model/probe.ts';
import { createProviderFetch } from '../../actors/model/provider-fetch.ts';
import { proxySecrets } from '../../actors/model/proxy-choice.ts';
import type { CommandContext } from '../client/command-context.ts';
import { secretsOf } from '../config/cloud-access.ts';
import { loadConfig } from '../config/config.ts';
import {
  askedPlace,
  baseUrlOf,
  type Provider,
  placeOfModel,
  providerSecrets,
  withChosenModel,
} from '../config/providers.ts';
import { type Config, configSchema } from '../config/schema/config-schema.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { findLocalModel } from '../server/local-models.ts';
import { compatOf, modelsFor } from '../server/models.ts';
import { requireKeptKeys } from '../server/secrets/kept-keys.ts';
import { createRedactor } from '../server/secrets/redact.ts';
import type { Check } from './backend-checks.ts';

/** The start flag that each server needs before it calls tools. */
const toolHints: Readonly<Record<string, string>> = {
  'llama.cpp': '; start it with --jinja',
  vLLM: '; start it with --enable-auto-tool-choice --tool-call-parser <parser>',
  Ollama: '; use a model that can call tools',
};

const probeText = (probe: ProtocolProbe, { served }: Findings, model: string): string => {
  const { failure, reachable, authorised, knowsModel, speaks, streams } = probe;
  const said = failure?.message ?? '';
  const hint = toolHints[served.kind ?? ''] ?? '';
  if (!reachable) return `not reachable: ${said}`;
  if (authorised === false) return `reachable, but not authorised: ${said}`;
  if (knowsModel === false) {
    const known =
      served.models === null ? '' : `; it serves ${served.models.slice(0, 8).join(', ') || 'none'}`;
    return `reachable and authorised, but there is no model ${model}${known}`;
  }
  if (speaks === false) return 'the server does not speak it';
  if (streams === false) return `the answer does not stream: ${said}`;
  if (failure !== null) return `no answer: ${said}${/tool/i.test(said) ? hint : ''}`;
  if (probe.callsTools === false) return `it answers, but calls no tools${hint}`;
  const usage =
    probe.reportsUsage === true
      ? 'reports usage'
      : 'reports no usage, so tokens and cost are estimates';
  return `reachable, authorised, knows the model, streams, calls tools, ${usage}`;
};

const windowCheck = ({ api }: Config, { served }: Findings): Check => {
  const check = 'window';
  const set = api.context_window;
  const told = served.contextWindow;
  const known = contextWindowOf(api.provider_model);
  const silent = served.kind === 'Ollama' ? '; Ollama silently cuts longer conversations' : '';
  if (set !== undefined && told !== null && set > told)
    return {
      check,
      status: 'problem',
      detail: `api.context_window is ${set}, but the server says ${told}`,
    };
  if (set !== undefined)
    return { check, status: 'ok', detail: `${set} tokens, by api.context_window${silent}` };
  if (told !== null && told !== known) {
    const taken = known === null ? 'nothing' : `${known}`;
    return {
      check,
      status: 'note',
      detail: `the server says ${told} tokens (assumed: ${taken}); set api.context_window`,
    };
  }
  if (known !== null)
    return { check, status: 'ok', detail: `${known} tokens, as published by its maker` };
  return {
    check,
    status: 'note',
    detail: `unknown; set api.context_window, or the first refusal tells${silent}`,
  };
};

/** Settings that the probe used and the configuration lacks. */
const missingSettings = (config: Config, used: Compat): Readonly<Record<string, unknown>> => {
  const { compat } = config.api;
  const needed = {
    max_tokens_field: used.maxTokensField,
    stream_options: used.streamOptions,
    tool_result_name: used.toolResultName,
    reply_after_tools: used.replyAfterTools,
    text_tool_calls: used.textToolCalls,
  };
  const host = new URL(baseUrlOf(config)).host;
  const given = { ...compat, max_tokens_field: compat.max_tokens_field ?? maxTokensFieldAt(host) };
  return Object.fromEntries(
    Object.entries(needed).filter(([name, value]) => given[name as keyof typeof given] !== value),
  );
};

const compatCheck = (
  config: Config,
  { probes, use }: Findings,
  { isDefault, name }: Provider,
): readonly Check[] => {
  const probe = probes.find(({ protocol }) => protocol === use);
  const missing = probe === undefined ? [] : Object.entries(missingSettings(config, probe.compat));
  const settings = missing.map(([name, value]) => `api.compat.${name} to ${value}`).join(', ');
  return missing.length === 0
    ? []
    : [
        {
          check: 'compat',
          status: 'problem',
          detail: isDefault
            ? `set ${settings}`
            : `it needs ${settings}, which is about api.base_url only: set that instead of providers.${name}`,
        },
      ];
};

/** True when the server lacks the usual protocol's endpoint, so the other one is used. */
const isElsewhere = ({ api }: Config, { probes }: Findings): boolean =>
  api.protocol === 'auto' && probes[0]?.speaks === false;

const protocolCheck = (config: Config, findings: Findings): Check => {
  const { use, configured } = findings;
  const check = 'protocol';
  if (use !== null && isElsewhere(config, findings))
    return { check, status: 'ok', detail: `${use}, since the server lacks ${configured}` };
  if (use === null)
    return { check, status: 'problem', detail: 'none works: agents cannot use this model' };
  if (use !== configured) return { check, status: 'problem', detail: `set api.protocol to ${use}` };
  return { check, status: 'ok', detail: `${use}, by api.protocol ${config.api.protocol}` };
};

const checksFor = (config: Config, findings: Findings, provider: Provider): readonly Check[] => [
  ...findings.probes.map((probe): Check => {
    const detail = probeText(probe, findings, config.api.provider_model);
    const isFine = probe.callsTools === true && probe.reportsUsage === true;
    const isReplaced = findings.use !== null && isElsewhere(config, findings);
    const matters =
      probe.protocol === findings.configured && probe.callsTools !== true && !isReplaced;
    return { check: probe.protocol, status: isFine ? 'ok' : matters ? 'problem' : 'note', detail };
  }),
  protocolCheck(config, findings),
  ...compatCheck(config, findings, provider),
  ...(findings.use === null ? [] : [windowCheck(config, findings)]),
];

const probeJson = (config: Config, { probes, use, served }: Findings) => ({
  use,
  context_window: served.contextWindow,
  probes: probes.map(({ protocol, reachable, failure, ...probe }) => ({
    protocol,
    needs: missingSettings(config, probe.compat),
    reachable,
    authorised: probe.authorised,
    speaks: probe.speaks,
    knows_model: probe.knowsModel,
    streams: probe.streams,
    calls_tools: probe.callsTools,
    reports_usage: probe.reportsUsage,
    error: failure?.message ?? null,
  })),
});

const missingText = ({ missing, remedy }: AskedPlace): string => `${missing} is not set; ${remedy}`;

/** As if the provider were the only one. What is set for the default provider is about no other one. */
const atAddress = (config: Config, { baseURL, isDefault }: Provider): Config => ({
  ...config,
  api: {
    ...config.api,
    ...(isDefault ? {} : { protocol: 'auto' as const, compat: usualCompat }),
    mode: 'direct' as const,
    base_url: baseURL ?? config.api.base_url,
  },
});
const usualCompat = configSchema.parse({}).api.compat;

/**
 * Sends one real request to the configured model and reports what it can do. Exit code 1 when
 * agents could not work with it.
 */
export const probeModelCommand = async (
  context: CommandContext,
  configFile: string | undefined,
): Promise<number> => {
  const { io, env, json, project } = context;
  requireKeptKeys(env);
  const given = loadConfig({ config: configFile, project }, env);
  const keyed = withChosenModel(given, env);
  const isKeyless = placeOfModel(keyed.config, keyed.config.api.provider_model, env).key === null;
  const local = isKeyless ? await findLocalModel(keyed.config, env) : null;
  const loaded = withChosenModel(given, env, { local });
  const { provider, model, key } = placeOfModel(
    loaded.config,
    loaded.config.api.provider_model,
    env,
  );
  const { baseURL } = provider;
  const config = atAddress(loaded.config, provider);
  const { api } = config;
  const backend = api.backend === 'auto' || api.backend === 'builtin' ? null : api.backend;
  if (backend !== null || key === null || baseURL === null) {
    const why =
      backend === null
        ? missingText(askedPlace(loaded, loaded.config.api.provider_model))
        : `api.backend is ${backend}`;
    if (json) io.json({ problem: why, probes: [] });
    io.err(`agent: there is no model to test: ${why}`);
    return exitCodes.failed;
  }
  const safe = createRedactor(() => [
    key,
    ...providerSecrets(loaded.config, env),
    ...secretsOf(provider.access),
    ...proxySecrets(env),
  ]);
  const asked = provider.type === 'openai' ? null : modelsFor(loaded, env)(api.provider_model);
  if (asked !== null) {
    const why = await probeOwnProtocol(asked, model);
    const problem = why === null ? null : safe(why);
    if (json) io.json({ model: api.provider_model, base_url: baseURL, problem, probes: [] });
    else io.out(`${api.provider_model} at ${baseURL}: ${problem ?? 'it answers and calls tools'}`);
    return problem === null ? exitCodes.done : exitCodes.failed;
  }
  const { protocol } = api;
  const findings = await probeModel({
    apiKey: key,
    baseURL,
    headers: provider.headers,
    model,
    protocol,
    compat: compatOf(api),
    fetch: createProviderFetch(env),
  });
  const checks = checksFor(config, findings, provider);
  if (json)
    io.json(
      JSON.parse(
        safe(
          JSON.stringify({
            model: api.provider_model,
            base_url: baseURL,
            checks,
            ...probeJson(config, findings),
          }),
        ),
      ),
    );
  else {
    io.out(safe(`${api.provider_model} at ${baseURL}`));
    for (const { check, status, detail } of checks)
      io.out(safe(`${status.padEnd(8)} ${check.padEnd(9)} ${detail}`));
  }
  return checks.some(({ status }) => status === 'problem') ? exitCodes.failed : exitCodes.done;
};
