import type { McpServer } from '../../actors/mcp/port.ts';
import { variablesIn } from '../../actors/mcp/variables.ts';
import type { Role } from '../../machines/task.ts';
import type { Config } from './config-schema.ts';
import type { McpServerConfig } from './mcp-schema.ts';

type McpConfig = Pick<Config['mcp'], 'servers'>;

const placeOf = (given: McpServerConfig): McpServer['place'] => {
  const { command, url, headers } = given;
  if (command === undefined) return { kind: 'http', url: url ?? '', headers };
  return {
    kind: 'stdio',
    argv: [command, ...given.args],
    env: given.env,
    sandboxed: given.sandbox === 'on',
    network: given.network,
    mayWrite: given.workspace === 'write',
    readPaths: given.read_paths,
  };
};

export const mcpServersFrom = ({ servers }: McpConfig): readonly McpServer[] =>
  Object.entries(servers).map(([name, given]) => ({
    name,
    place: placeOf(given),
    tools: given.tools ?? null,
    startMs: given.start_timeout_seconds * 1_000,
    callMs: given.timeout_seconds * 1_000,
  }));

/** Names of the servers that a role may use. */
export const mcpServersOf = ({ servers }: McpConfig, role: Role): readonly string[] =>
  Object.entries(servers)
    .filter(([, { roles }]) => roles?.includes(role) ?? true)
    .map(([name]) => name);

/** Values of the variables that servers get; they are secrets, whatever their names. */
export const mcpSecrets = ({ servers }: McpConfig, env: NodeJS.ProcessEnv): readonly string[] =>
  Object.values(servers)
    .flatMap(({ env: own, headers }) => [...Object.values(own), ...Object.values(headers)])
    .flatMap(variablesIn)
    .flatMap((name) => env[name] ?? []);
