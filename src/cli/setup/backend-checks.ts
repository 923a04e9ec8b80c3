import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Assistants } from '../../actors/assistants/assistants.ts';
import { createClaude } from '../../actors/assistants/claude.ts';
import { readRegular } from '../../actors/files/regular-file.ts';
import { nameInPrices, priceOf, priceTable } from '../../actors/model/price-table.ts';
import { proxyFor, shownProxy } from '../../actors/model/proxy-choice.ts';
import { childEnvironment } from '../../actors/process/run-command.ts';
import { isAssistantName } from '../../machines/agent/agent-context.ts';
import { parseJson } from '../../machines/json.ts';
import type { LoadedConfig } from '../config/config.ts';
import {
  askedPlace,
  type FoundKey,
  keyFault,
  keyPlaces,
  type Provider,
  placeOfModel,
  withChosenModel,
} from '../config/providers.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { isWholePrice, pricesFrom } from '../config/settings.ts';
import { assistantsFor, takeCredentials } from '../server/assistants.ts';
import { findLocalModel } from '../server/local-models.ts';
import { modelNote, modelsFor } from '../server/models.ts';
import { keptKeysFile, requireKeptKeys } from '../server/secrets/kept-keys.ts';

const settingsSchema = z.looseObject({
  permissions: z.looseObject({ allow: z.array(z.string()).catch([]) }),
});
const settingsBytesAtMost = 1024 * 1024;

/** `Bash(npm test:*),Edit` */
const toolsIn = (text: string): readonly string[] => text.match(/[^\s,(]+(?:\([^)]*\))?/g) ?? [];

/** The values of an option that claude takes with several words, or with commas. */
const toolsOf = (args: readonly string[], option: RegExp): readonly string[] => {
  let isOpen = false;
  return args.flatMap((arg) => {
    const [name = '', ...value] = arg.startsWith('-') ? arg.split('=') : [];
    if (arg.startsWith('-')) isOpen = option.test(name);
    return isOpen ? toolsIn(arg.startsWith('-') ? value.join('=') : arg) : [];
  });
};

/** In the user's own settings of claude, which count beside our arguments. */
const toolsInSettings = (env: Readonly<Record<string, string>>): readonly string[] => {
  const [folder] = createClaude().needs(env).folders;
  try {
    const text = readRegular(join(folder?.path ?? '', 'settings.json'), settingsBytesAtMost);
    return settingsSchema.safeParse(parseJson(text)).data?.permissions.allow ?? [];
  } catch {
    return [];
  }
};

/** Which tools claude may use without asking, and how to allow more: nobody can be asked. */
const claudeToolsText = (
  { api: { claude_args: args }, mcp }: Config,
  env: Readonly<Record<string, string>>,
): string => {
  const denied = toolsOf(args, /^--disallowed-?tools$/i);
  const without = denied.length === 0 ? '' : `, without ${denied.join(', ')}`;
  const mode = args.find(
    (arg, at) => /^bypassPermissions$/.test(arg) && args[at - 1] === '--permission-mode',
  );
  if (
    mode !== undefined ||
    args.some((arg) => /^--dangerously-skip-permissions|=bypassPermissions$/.test(arg))
  )
    return `uses every tool, by api.claude_args${without}`;
  const allowed = [
    ...toolsOf(args, /^--allowed-?tools$/i),
    ...toolsInSettings(env),
    ...Object.keys(mcp.servers).map((name) => `mcp__${name}`),
  ];
  const more =
    allowed.length === 0 ? 'runs no command' : `may use ${[...new Set(allowed)].join(', ')}`;
  return `reads and edits the workspace, and ${more}${without}; to allow more, for instance: agent config set api.claude_args '["--allowedTools", "Bash(npm test:*)"]'`;
};

export interface Check {
  readonly check: string;
  readonly status: 'ok' | 'note' | 'problem';
  readonly detail: string;
}

const roleChecks = ({ roles }: Config, assistants: Assistants): readonly Check[] =>
  Object.entries(roles).flatMap(([role, own]) => {
    if (own?.backend === undefined) return [];
    const problem = isAssistantName(own.backend) ? assistants.problem(own.backend) : null;
    const detail = `${own.backend}, by roles.${role}.backend`;
    return [
      problem === null
        ? { check: role, status: 'ok' as const, detail }
        : { check: role, status: 'problem' as const, detail: `${detail}, but ${problem}` },
    ];
  });

/** Roles whose model cannot be asked, where the model of the others is another provider's. */
const roleModelChecks = (
  chosen: LoadedConfig,
  assistants: Assistants,
  env: NodeJS.ProcessEnv,
): readonly Check[] => {
  const { roles, api } = chosen.config;
  const usual = placeOfModel(chosen.config, api.provider_model, env).provider.name;
  return Object.entries(roles).flatMap(([role, own]) => {
    const { model, backend = api.backend } = own ?? {};
    const isOurs = backend === 'builtin' || (backend === 'auto' && assistants.loggedIn() === null);
    if (model === undefined || model === 'scripted' || !isOurs) return [];
    const { provider, key } = placeOfModel(chosen.config, model, env);
    if (provider.name === usual || (key !== null && provider.baseURL !== null)) return [];
    const { missing, remedy, refusal } = askedPlace(chosen, model);
    const problem = refusal ?? `${missing} is not set; ${remedy}`;
    const detail = `${model}, by roles.${role}.model, but ${problem}`;
    return [{ check: role, status: 'problem' as const, detail }];
  });
};

const priceChecks = (chosen: LoadedConfig, models: ReadonlySet<string>): readonly Check[] => {
  const priced = {
    prices: pricesFrom(chosen),
    placeOf: (name: string) => askedPlace(chosen, name),
  };
  return [...models].map((model) => {
    const price = priceOf(priced, model);
    const own = chosen.config.api.prices[nameInPrices(priced, model) ?? ''];
    const over = own === undefined ? '' : isWholePrice(own) ? 'api.prices' : 'api.prices over ';
    const by = over === 'api.prices' ? over : `${over}${priceTable}`;
    return price === undefined
      ? {
          check: 'price',
          status: 'note',
          detail: `${model}: not known, so no cost is counted and no limit of cost can be kept; set it: agent config set 'api.prices."${model}"' '{"input_per_million": <usd>, "output_per_million": <usd>}'`,
        }
      : {
          check: 'price',
          status: 'ok',
          detail: `${model}: $${price.input} in, $${price.output} out for a million tokens, by ${by}`,
        };
  });
};

/** Only a variable is not looked at before: another one may be used, and a server goes on. */
const variableFault = ({ source, key }: FoundKey): string | null =>
  source === 'variable' && key !== '' ? keyFault(key) : null;

export const foundText = (found: FoundKey, env: NodeJS.ProcessEnv): string => {
  const fault = variableFault(found);
  return fault === null ? placeText(found, env) : `${found.from} holds no key: ${fault}`;
};

const placeText = ({ source, from }: FoundKey, env: NodeJS.ProcessEnv): string =>
  ({
    key_file: `its key is in ${from}`,
    variable: `${from} is set`,
    kept: `its key is in ${keptKeysFile(env)}, by agent auth login`,
    not_needed: 'it needs no key',
  })[source];

const localText =
  'the first model of a server on this machine that answers: no key is set and no coding assistant is logged in';

/** How calls to the provider leave this machine, where that is not the usual way. */
const roadChecks = ({ baseURL }: Provider, env: NodeJS.ProcessEnv): readonly Check[] => {
  const authority = env['NODE_EXTRA_CA_CERTS'];
  const trusted: Check = existsSync(authority ?? '')
    ? { check: 'trust', status: 'ok', detail: `also the certificates of ${authority}` }
    : { check: 'trust', status: 'problem', detail: `NODE_EXTRA_CA_CERTS: no file ${authority}` };
  const roads = authority ? [trusted] : [];
  try {
    const proxy = baseURL === null ? null : proxyFor(baseURL, env);
    if (proxy === null) return roads;
    const detail = `calls to the provider go through ${shownProxy(proxy)}, by ${proxy.variable}`;
    return [{ check: 'proxy', status: 'ok', detail }, ...roads];
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return [{ check: 'proxy', status: 'problem', detail }, ...roads];
  }
};

/** Reports the backend that a server would choose now, and why. */
export const backendChecks = async (
  loaded: LoadedConfig,
  given: NodeJS.ProcessEnv,
): Promise<readonly Check[]> => {
  const env = { ...given };
  const environment = childEnvironment(env);
  const credentials = takeCredentials(env);
  const variables = { ...env, ...credentials };
  requireKeptKeys(variables);
  const first = withChosenModel(loaded, variables);
  const assistants = assistantsFor(first.config, { credentials, environment, env });
  const noteOf = (given: LoadedConfig) =>
    modelNote(given, { selectModel: modelsFor(given, variables), assistants });
  if (!noteOf(first).ok) await assistants.checkLogins();
  const local = noteOf(first).ok ? null : await findLocalModel(first.config, variables);
  const chosen = local === null ? first : withChosenModel(loaded, variables, { local });
  const { config } = chosen;
  const { ok, detail, assistant } = noteOf(chosen);
  const scripted = config.api.backend === 'scripted';
  const { provider } = placeOfModel(config, config.api.provider_model, variables);
  const found = keyPlaces(config, variables).find(({ name }) => name === provider.name)?.found;
  const why =
    ok && found && !scripted && !isAssistantName(config.api.backend)
      ? `; ${local === null ? foundText(found, variables) : localText}`
      : '';
  const paid = new Set(
    Object.values(config.roles).flatMap(({ backend = config.api.backend, model } = {}) =>
      model === undefined || isAssistantName(backend) ? [] : [model],
    ),
  );
  if (assistant === undefined) paid.add(config.api.provider_model);
  paid.delete('scripted');
  const usesClaude =
    assistant === 'claude' || Object.values(config.roles).some((own) => own?.backend === 'claude');
  const isFaulty = found != null && why !== '' && variableFault(found) !== null;
  const status = scripted ? 'note' : ok && !isFaulty ? 'ok' : 'problem';
  return [
    { check: 'model', status, detail: `${detail.replace(/^none: /, '')}${why}` },
    ...(ok && chosen.choice !== undefined
      ? [{ check: 'model', status: 'note' as const, detail: chosen.choice }]
      : []),
    ...roleChecks(config, assistants),
    ...roleModelChecks(chosen, assistants, variables),
    ...(usesClaude
      ? [
          {
            check: 'claude',
            status: 'ok' as const,
            detail: claudeToolsText(config, { ...environment, ...credentials }),
          },
        ]
      : []),
    ...(scripted ? [] : priceChecks(chosen, paid)),
    ...(scripted || assistant !== undefined ? [] : roadChecks(provider, variables)),
  ];
};
