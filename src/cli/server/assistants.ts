import { createAcp } from '../../actors/assistants/acp/acp.ts';
import { acpVariables } from '../../actors/assistants/acp/known-agents.ts';
import {
  type Assistants,
  createAssistants,
  type LoginAssistant,
} from '../../actors/assistants/assistants.ts';
import { createClaude } from '../../actors/assistants/claude.ts';
import { createCodex } from '../../actors/assistants/codex.ts';
import { createCommandAssistant } from '../../actors/assistants/command.ts';
import type { Assistant } from '../../actors/assistants/port.ts';
import { proxySecrets } from '../../actors/model/proxy-choice.ts';
import { mcpSecrets } from '../config/mcp-servers.ts';
import { forgeToken } from '../config/places/forge-place.ts';
import { modelRefusal } from '../config/policy.ts';
import { forgeKeys, keyVariables, providerSecrets } from '../config/providers.ts';
import type { Config } from '../config/schema/config-schema.ts';

const credentialVariables = [
  ...new Set([
    ...[createCodex(), createClaude()].flatMap(({ variables }) => variables),
    ...acpVariables,
    ...keyVariables,
    ...Object.values(forgeKeys).flatMap(({ variables }) => variables),
  ]),
];
/** Other variables have paths, addresses and switches. */
const isSecret = (name: string): boolean => /KEY|TOKEN|SECRET|PASSW/i.test(name);

export const credentialsIn = (env: NodeJS.ProcessEnv): Readonly<Record<string, string>> =>
  Object.fromEntries(
    credentialVariables.flatMap((name) => (env[name] ? [[name, env[name]] as const] : [])),
  );

/** Removes every credential from the environment, so that no child process inherits one. */
export const takeCredentials = (env: NodeJS.ProcessEnv): Readonly<Record<string, string>> => {
  const given = credentialsIn(env);
  for (const name of Object.keys(given)) delete env[name];
  return given;
};

export const secretsIn = (
  config: Config,
  credentials: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv,
): readonly string[] => {
  const { api, forge, mcp } = config;
  const ofForge = forgeToken(forge, env);
  return [
    ...(ofForge === null ? [] : [ofForge]),
    ...providerSecrets(config, env),
    ...proxySecrets(env),
    ...mcpSecrets(mcp, env),
    ...Object.entries(credentials).flatMap(([name, value]) => (isSecret(name) ? [value] : [])),
    ...api.pass_environment.filter(isSecret).flatMap((name) => env[name] ?? []),
  ];
};

export interface ServerEnvironment {
  readonly credentials: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  readonly env: NodeJS.ProcessEnv;
}

const at = (path: string | undefined) => (path === undefined ? {} : { path });

/**
 * Candidates of the automatic choice: none behind a proxy; only codex outside our sandbox, since it
 * has its own.
 */
const candidatesOf = ({
  api,
  policy,
  sandbox,
}: Pick<Config, 'api' | 'policy' | 'sandbox'>): readonly LoginAssistant[] => {
  if (api.mode === 'proxy') return [];
  const held: readonly LoginAssistant[] =
    sandbox.mode === 'required' && sandbox.assistants === 'off' ? ['codex'] : ['codex', 'claude'];
  return held.filter((name) => modelRefusal(policy, name, null) === null);
};

/** `never`: what no assistant gets a copy of. */
export const assistantsFor = (
  { api, policy, sandbox }: Config,
  { credentials, environment, env }: ServerEnvironment,
  never: readonly string[] = [],
): Assistants => {
  const named = sandbox.home === 'copy' ? sandbox.home_paths : [];
  const paths = named.map((path) => path.replace(/^~\//, ''));
  const withHome = (assistant: Assistant): Assistant =>
    paths.length === 0
      ? assistant
      : {
          ...assistant,
          needs: (of) => ({ ...assistant.needs(of), copies: { paths, never } }),
        };
  const passedVariables = api.pass_environment.filter(
    (name) => !name.startsWith('AGENT_') && !name.startsWith('ATS_'),
  );
  const more = passedVariables.flatMap((name) =>
    env[name] === undefined ? [] : [[name, env[name]] as const],
  );
  const [program, ...args] = api.command ?? [];
  const [agent, ...agentArgs] = api.acp.command ?? [];
  return createAssistants({
    codex: createCodex({ ...at(api.codex_path), args: api.codex_args }),
    claude: createClaude({ ...at(api.claude_path), args: api.claude_args }),
    command: program === undefined ? null : withHome(createCommandAssistant([program, ...args])),
    acp: agent === undefined ? null : withHome(createAcp([agent, ...agentArgs])),
    candidates: candidatesOf({ api, policy, sandbox }),
    environment,
    secrets: { ...credentials, ...Object.fromEntries(more) },
    passedVariables,
    sandboxed: sandbox.assistants === 'on',
    now: () => performance.now(),
  });
};

/** Delegates each call to the assistants of the newest configuration. */
export const currentAssistants = (current: () => Assistants): Assistants => ({
  of: (name) => current().of(name),
  problem: (name) => current().problem(name),
  loggedIn: () => current().loggedIn(),
  checkLogins: () => current().checkLogins(),
  environmentOf: (assistant) => current().environmentOf(assistant),
  sandboxed: () => current().sandboxed(),
});
