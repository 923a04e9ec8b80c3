import { acpAgent } from '../../actors/assistants/acp/known-agents.ts';
import type { RoleSettings, Settings } from '../../actors/engine/attempts/settings.ts';
import type { Price } from '../../actors/model/price.ts';
import { priceForAssistant, priceOf, tablePrice } from '../../actors/model/price-table.ts';
import type { A2aRules } from '../../http/a2a/protocol.ts';
import { isAssistantName } from '../../machines/agent/agent-context.ts';
import { budgetNames } from '../../machines/agent/budget.ts';
import { forEachRole, type Role } from '../../machines/task.ts';
import { applyProjectRoles, type ProjectRoleOutcome } from '../roles/apply-project-roles.ts';
import { ownRole } from '../roles/own-role.ts';
import { readProjectRoles, shippedRoles } from '../roles/read-project-roles.ts';
import { effectiveCap, type LoadedConfig } from './config.ts';
import { ConfigError } from './config-error.ts';
import { mcpServersFrom, mcpServersOf } from './mcp-servers.ts';
import { modelRefusal } from './policy.ts';
import { askedPlace, type ChosenConfig } from './providers.ts';
import type { Config } from './schema/config-schema.ts';

const roleFrom = (loaded: LoadedConfig, role: Role): RoleSettings => {
  const { agent, mcp } = loaded.config;
  const shipped = shippedRoles()[role];
  const { parts: own } = ownRole(loaded, role);
  const seconds = own.timeout_seconds ?? agent.timeout_seconds;
  return {
    ...shipped,
    description: own.description ?? shipped.description,
    tools: own.tools ?? shipped.tools,
    timeoutMs: seconds === undefined ? shipped.timeoutMs : seconds * 1_000,
    prompt: own.prompt ?? shipped.prompt,
    // A prompt of the user's own is about other work.
    criteria: own.success_criteria ?? (own.prompt === undefined ? shipped.criteria : []),
    backend: own.backend ?? null,
    model: own.model ?? null,
    maxTurns: own.max_turns ?? null,
    maxTokensTotal: own.max_tokens_total ?? null,
    maxCostUsd: own.max_cost_usd ?? null,
    approvals: own.require_approval ?? agent.require_approval,
    verify: own.verify ?? [],
    network: own.network ?? null,
    concurrency: own.concurrency ?? null,
    mcp: mcpServersOf(mcp, role),
  };
};

type GivenPrice = Config['api']['prices'][string];

export const isWholePrice = ({ input_per_million, output_per_million }: GivenPrice): boolean =>
  input_per_million !== undefined && output_per_million !== undefined;

/** A whole price is the user's alone; of a part, the table has the rest, also for long contexts. */
const priceOver = (table: Price | undefined, given: GivenPrice): Price | undefined => {
  const { input_per_million: input, output_per_million: output } = given;
  const rest = isWholePrice(given) ? undefined : table;
  const { above } = rest ?? {};
  const base = {
    input: input ?? rest?.input,
    output: output ?? rest?.output,
    cachedInput: given.cached_input_per_million ?? rest?.cachedInput ?? input,
    cacheWrite: given.cache_write_per_million ?? rest?.cacheWrite,
  };
  if (base.input === undefined || base.output === undefined) return undefined;
  const price = { ...base, input: base.input, output: base.output };
  const long = above === undefined ? undefined : priceOver(above.price, given);
  return {
    ...price,
    cachedInput: price.cachedInput ?? price.input,
    ...(above === undefined || long === undefined
      ? {}
      : { above: { tokens: above.tokens, price: long } }),
  };
};

/** By `api.prices`, over the table. @throws ConfigError where both together are no price */
export const pricesFrom = (chosen: ChosenConfig): Readonly<Record<string, Price>> =>
  Object.fromEntries(
    Object.entries(chosen.config.api.prices).map(([name, given]) => {
      const { model, baseUrl } = askedPlace(chosen, name);
      const table = isWholePrice(given)
        ? undefined
        : (tablePrice(model, baseUrl) ?? tablePrice(model, null));
      const price = priceOver(table, given);
      if (price !== undefined) return [name, price] as const;
      const missing = ['input_per_million', 'output_per_million'].filter(
        (key) => given[key as keyof GivenPrice] === undefined,
      );
      throw new ConfigError(
        `api.prices.${name}: ${missing.join(' and ')} is missing, and the price table does not know ${model}; set the whole price: agent config set 'api.prices."${name}"' '{"input_per_million": <usd>, "output_per_million": <usd>}'`,
      );
    }),
  );

const isScripted = ({ config }: LoadedConfig): boolean => config.api.backend === 'scripted';

/** Only some agents of the Agent Client Protocol ask before their calls. */
const requireAskingBackends = (
  { roles: own, backend }: Settings,
  agent: ReturnType<typeof acpAgent> | null,
): void => {
  for (const { role, backend: named, approvals } of Object.values(own)) {
    const chosen = named ?? backend;
    if (approvals.length === 0 || !isAssistantName(chosen)) continue;
    if (chosen === 'acp' && agent?.asks === true) continue;
    const who = chosen === 'acp' ? (agent?.name ?? chosen) : chosen;
    throw new ConfigError(
      `require_approval: the ${role} works with ${who}, which cannot ask for approval; name another backend, or remove require_approval`,
    );
  }
};

/** Outside our sandbox only codex confines its own commands. */
const requireHeld = ({ roles: own, backend }: Settings, required: boolean): void => {
  if (!required) return;
  for (const { role, backend: named } of Object.values(own))
    if (isAssistantName(named ?? backend) && (named ?? backend) !== 'codex')
      throw new ConfigError(
        `sandbox.mode is required, but the ${role} works with ${named ?? backend}, which runs outside the sandbox; set sandbox.assistants to on, or name another backend`,
      );
};

/** The first limit of cost that holds for a role, by its key. */
const costLimitOf = (
  { maxCostUsd, budgets }: Settings,
  { role, maxCostUsd: own }: RoleSettings,
): string | null => {
  if (own !== null) return `roles.${role}.max_cost_usd`;
  if (maxCostUsd !== null) return 'agent.max_cost_usd';
  const budget = budgetNames.find((name) => budgets[`${name}Usd`] !== null);
  return budget === undefined ? null : `budget.${budget}_usd`;
};

/** A cost limit needs a price. Without this check, only a run would reveal the gap. */
const requirePrices = (settings: Settings, scripted: boolean, acpReportsCost: boolean): void => {
  if (scripted) return;
  for (const own of Object.values(settings.roles)) {
    const backend = own.backend ?? settings.backend;
    // An assistant that reports its cost needs no price.
    if (backend === 'claude' || backend === 'scripted') continue;
    if (backend === 'acp' && acpReportsCost) continue;
    const model = own.model ?? (isAssistantName(backend) ? backend : settings.defaultModel);
    const limit = costLimitOf(settings, own);
    if (limit === null || model === 'scripted') continue;
    const price = (isAssistantName(backend) ? priceForAssistant : priceOf)(settings, model);
    if (price === undefined)
      throw new ConfigError(
        `${limit}: the ${own.role} runs ${model}, whose price is not known; set it: agent config set 'api.prices."${model}"' '{"input_per_million": <usd>, "output_per_million": <usd>}'`,
      );
  }
};

const setupFrom = (given: Config['workspace']['setup']): Settings['setup'] =>
  given.commands.length === 0
    ? null
    : {
        commands: given.commands,
        network: given.network,
        timeoutMs: given.timeout_seconds * 1_000,
        cache: given.cache,
      };

/** What another key may change while the server runs. */
export const modelChoice = (loaded: LoadedConfig): Pick<Settings, 'defaultModel' | 'placeOf'> => ({
  defaultModel: isScripted(loaded) ? 'scripted' : loaded.config.api.provider_model,
  placeOf: (model) => askedPlace(loaded, model),
});

const boundsFrom = ({ only, at_most: limits }: Config['policy']): Settings['bounds'] => {
  const { 'agent.timeout_seconds': seconds } = limits;
  return {
    hosts: only.hosts ?? true,
    maxTurns: limits['agent.max_turns'] ?? null,
    maxTokensTotal: limits['agent.max_tokens_total'] ?? null,
    maxCostUsd: limits['agent.max_cost_usd'] ?? null,
    timeoutMs: seconds === undefined ? null : seconds * 1_000,
    runUsd: limits['budget.run_usd'] ?? null,
  };
};

/** Seconds between two looks at a pull request of which nothing moves. */
const slowestPoll = 300;

/** Without the project's role files. @throws ConfigError */
const ownSettings = (loaded: LoadedConfig, projectRoot: string): Settings => {
  const { agent, api, budget, forge, merge, policy, sandbox, server, workspace } = loaded.config;
  return {
    projectRoot,
    leaseMs: loaded.config.store.lease_seconds * 1_000,
    cap: effectiveCap(loaded.config),
    sharedCap: server.max_concurrent_agents,
    ownRoles: server.roles ?? null,
    roles: forEachRole((role) => roleFrom(loaded, role)),
    backend: api.backend,
    assistantRefusal: (name, model) => modelRefusal(loaded.config.policy, name, model),
    bounds: boundsFrom(loaded.config.policy),
    onInterrupted: agent.on_interrupted,
    onDependencyFailure: agent.on_dependency_failure,
    onQuota: agent.on_quota,
    notes: loaded.config.tracker.notes,
    network: sandbox.network,
    allowTaskNetwork: sandbox.allow_task_network,
    queueLimit: server.queue_limit,
    maxTurns: agent.max_turns,
    maxTokensTotal: agent.max_tokens_total,
    maxCostUsd: agent.max_cost_usd ?? null,
    budgets: {
      runUsd: budget.run_usd ?? null,
      dayUsd: budget.day_usd ?? null,
      monthUsd: budget.month_usd ?? null,
    },
    merge: workspace.merge,
    landing: {
      notAuthor: policy.merge === 'not_author',
      style: merge.style,
      verify: merge.verify,
      timeoutMs: merge.timeout_seconds * 1_000,
      maxBatch: merge.max_batch,
      onConflict: merge.on_conflict,
      onRed: merge.on_red,
      maxRounds: merge.max_rounds,
      radar: merge.radar,
      sign: merge.sign,
      regenerate: merge.regenerate,
    },
    sources: loaded.config.tracker.sources.map(({ repository = null, labels, write_back }) => ({
      repository,
      labels,
      writeBack: write_back,
    })),
    publishing: {
      publish: forge.publish,
      draft: forge.draft,
      pauseMs: [forge.poll_seconds * 1_000, Math.max(forge.poll_seconds, slowestPoll) * 1_000],
      checksWaitMs: forge.checks_wait_seconds * 1_000,
      onChecks: forge.on_checks,
      onComments: forge.on_comments,
      maxRounds: forge.max_rounds,
      authors: forge.authors,
      merge: forge.merge,
      // A forge does not fast-forward.
      method: merge.style === 'squash' ? 'squash' : 'merge',
      link: forge.link ?? null,
    },
    setup: setupFrom(workspace.setup),
    idleMs: agent.idle_timeout_seconds * 1_000,
    answerMs: agent.answer_timeout_seconds * 1_000,
    defaultAnswer: agent.default_answer ?? null,
    defaultDecision: agent.default_decision === 'deny' ? 'deny' : null,
    maxRetries: agent.max_retries,
    maxModelRetries: agent.max_model_retries,
    maxTokens: api.max_tokens,
    contextWindow: api.context_window ?? null,
    ...modelChoice(loaded),
    prices: pricesFrom(loaded),
    mcpServers: mcpServersFrom(loaded.config.mcp, projectRoot),
  };
};

export interface ResolvedSettings {
  readonly settings: Settings;
  readonly projectRoles: readonly ProjectRoleOutcome[];
}

/** The configuration, narrowed by the project's role files. @throws ConfigError */
export const resolveSettings = (loaded: LoadedConfig, projectRoot: string): ResolvedSettings => {
  const { mode, assistants } = loaded.config.sandbox;
  const [program, ...args] = loaded.config.api.acp.command ?? [];
  const agent = program === undefined ? null : acpAgent([program, ...args]);
  const check = (settings: Settings): void => {
    requirePrices(settings, isScripted(loaded), agent?.reportsCost === true);
    requireAskingBackends(settings, agent);
    requireHeld(settings, mode === 'required' && assistants === 'off');
  };
  const own = ownSettings(loaded, projectRoot);
  check(own);
  const sandboxed = mode !== 'off';
  const { settings, outcomes } = applyProjectRoles(own, readProjectRoles(projectRoot), {
    sandboxed,
    check,
  });
  return { settings, projectRoles: outcomes };
};

export const settingsFrom = (loaded: LoadedConfig, projectRoot: string): Settings =>
  resolveSettings(loaded, projectRoot).settings;

export const a2aRulesFrom = ({
  versions,
  strict_version,
  public_url,
}: Config['a2a']): A2aRules => ({
  versions,
  isStrict: strict_version,
  publicUrl: public_url?.replace(/(?<!\/)\/+$/, '') ?? null,
});
