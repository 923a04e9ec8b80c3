import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { roleProfiles } from '../actors/agent/roles.ts';
import type { Price, RoleSettings, Settings } from '../actors/settings.ts';
import { type Role, roles } from '../machines/task.ts';
import { ConfigError, effectiveCap, type LoadedConfig } from './config.ts';
import type { Config } from './config-schema.ts';

/** The variable that holds the provider's key (Spec 5.1). */
export const keyVariable = 'OPENAI_API_KEY';

const promptFrom = (file: string, configFile: string | null, role: Role): string => {
  const path = resolve(configFile === null ? '.' : dirname(configFile), file);
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new ConfigError(`roles.${role}.prompt_file: ${path} cannot be read`, { cause });
  }
};

const roleFrom = ({ config, file }: LoadedConfig, role: Role): RoleSettings => {
  const given = config.roles[role] ?? {};
  const profile = roleProfiles[role];
  const seconds = given.timeout_seconds ?? config.agent.timeout_seconds;
  return {
    ...profile,
    ...(given.tools === undefined ? {} : { tools: given.tools }),
    ...(seconds === undefined ? {} : { timeoutMs: seconds * 1_000 }),
    ...(given.prompt_file === undefined ? {} : { prompt: promptFrom(given.prompt_file, file, role) }),
    backend: given.backend ?? null,
    model: given.model ?? null,
    maxTurns: given.max_turns ?? null,
    maxTokensTotal: given.max_tokens_total ?? null,
    maxCostUsd: given.max_cost_usd ?? null,
    approvals: given.require_approval ?? config.agent.require_approval,
    verify: given.verify ?? [],
    concurrency: given.concurrency ?? null,
  };
};

const priceFrom = (given: Config['api']['prices'][string]): Price => ({
  input: given.input_per_million,
  cachedInput: given.cached_input_per_million ?? given.input_per_million,
  output: given.output_per_million,
});

const isAssistant = (backend: string): boolean => ['codex', 'claude', 'command'].includes(backend);

/** An assistant cannot ask a person for leave: a promise that could not be kept is not made. */
const requireNoApprovals = ({ roles: own, backend }: Settings): void => {
  for (const { role, backend: named, approvals } of Object.values(own))
    if (isAssistant(named ?? backend) && approvals.length > 0)
      throw new ConfigError(
        `require_approval: the ${role} works with ${named ?? backend}, which cannot ask for leave; name another backend, or leave it out`,
      );
};

/** codex holds its commands itself; the others run as the user, which is not what `required` means. */
const requireHeld = ({ roles: own, backend }: Settings, required: boolean): void => {
  if (!required) return;
  for (const { role, backend: named } of Object.values(own))
    if (['claude', 'command'].includes(named ?? backend))
      throw new ConfigError(
        `sandbox.mode is required, but the ${role} works with ${named ?? backend}, which runs outside of it; name another backend`,
      );
};

/** A limit of cost for a model without a price would be found out only when somebody runs it. */
const requirePrices = (settings: Settings, scripted: boolean): void => {
  if (scripted) return;
  const { prices, defaultModel, maxCostUsd } = settings;
  for (const own of Object.values(settings.roles)) {
    const backend = own.backend ?? settings.backend;
    // Who says what it cost needs no price.
    if (backend === 'claude' || backend === 'scripted') continue;
    const model = own.model ?? (isAssistant(backend) ? backend : defaultModel);
    if ((own.maxCostUsd ?? maxCostUsd) !== null && prices[model] === undefined && model !== 'scripted')
      throw new ConfigError(`max_cost_usd: the ${own.role} runs ${model}, whose price is not in api.prices`);
  }
};

/** What the system runs by, from the configuration. @throws ConfigError */
export const settingsFrom = (loaded: LoadedConfig, projectRoot: string): Settings => {
  const { agent, api, server, workspace } = loaded.config;
  const scripted = api.backend === 'scripted';
  const settings: Settings = {
    projectRoot,
    cap: effectiveCap(loaded.config),
    roles: Object.fromEntries(roles.map((role) => [role, roleFrom(loaded, role)])) as Record<Role, RoleSettings>,
    backend: api.backend,
    onInterrupted: agent.on_interrupted,
    onDependencyFailure: agent.on_dependency_failure,
    notes: loaded.config.tracker.notes,
    queueLimit: server.queue_limit,
    maxTurns: agent.max_turns,
    maxTokensTotal: agent.max_tokens_total,
    maxCostUsd: agent.max_cost_usd ?? null,
    merge: workspace.merge,
    idleMs: agent.idle_timeout_seconds * 1_000,
    answerMs: agent.answer_timeout_seconds * 1_000,
    maxRetries: agent.max_retries,
    maxModelRetries: agent.max_model_retries,
    maxTokens: api.max_tokens,
    defaultModel: scripted ? 'scripted' : api.provider_model,
    prices: Object.fromEntries(Object.entries(api.prices).map(([model, price]) => [model, priceFrom(price)])),
    credentialVariable: keyVariable,
  };
  requirePrices(settings, scripted);
  requireNoApprovals(settings);
  requireHeld(settings, loaded.config.sandbox.mode === 'required');
  return settings;
};
