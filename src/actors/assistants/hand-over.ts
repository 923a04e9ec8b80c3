import type { HandedServer } from '../mcp/port.ts';
import { mcpPrefix } from '../mcp/port.ts';

/** An assistant starts the user's MCP servers by these, beside its own arguments. */
export interface HandOver {
  readonly arguments: readonly string[];
  /** Secrets go here or into the file: every user of the machine can read a command line. */
  readonly variables: Readonly<Record<string, string>>;
  /** The content of a file that only we and the assistant read, or null. */
  readonly file: string | null;
}

export const noHandOver: HandOver = { arguments: [], variables: {}, file: null };

/** Variables of every child process; `ATS_ATTEMPT` finds what an earlier server left. */
const keptVariables = 'PATH|HOME|USER|LOGNAME|LANG|LC_*|TZ|TMPDIR|TERM|ATS_ATTEMPT|ATS_COMMAND';

/**
 * Starts the program with the variables of its entry alone: claude gives a server its whole own
 * environment, with its keys. `given`: names that are set from other ones.
 */
const withoutKeys = (
  argv: readonly string[],
  names: readonly string[],
  given: readonly (readonly [name: string, from: string])[] = [],
): readonly [string, ...string[]] => {
  const kept = [keptVariables, ...names].join('|');
  const script = [
    ...given.map(([name, from]) => `export ${name}="$${from}"`),
    'set -f',
    'for name in $(env | cut -d= -f1); do',
    `case $name in ''|[0-9]*|*[!A-Za-z0-9_]*|${kept}) ;; *) unset "$name" ;; esac`,
    'done',
    'exec "$@"',
  ].join('\n');
  return ['/bin/sh', '-c', script, 'sh', ...argv];
};

const commandOf = ({ argv, env }: Extract<HandedServer['place'], { readonly kind: 'stdio' }>) => {
  const [command, ...args] = withoutKeys(argv, Object.keys(env));
  return { command, args };
};

/** `--strict-mcp-config` keeps the project's servers out; this file names the user's. */
export const handToClaude = (servers: readonly HandedServer[], file: string): HandOver => {
  const entries = servers.map(({ name, place }) => [
    name,
    place.kind === 'http'
      ? { type: 'http', url: place.url, headers: place.headers }
      : { type: 'stdio', ...commandOf(place), env: place.env },
  ]);
  const allowed = servers.flatMap(({ name, tools }) =>
    tools === null
      ? [`${mcpPrefix}${name}`]
      : tools.map((tool) => `${mcpPrefix}${name}__${tool.replace(/[^\w-]/g, '_')}`),
  );
  return {
    arguments: [`--mcp-config=${file}`, `--allowedTools=${allowed.join(',')}`],
    variables: {},
    file: JSON.stringify({ mcpServers: Object.fromEntries(entries) }),
  };
};

/** By its name, codex keeps such a variable out of the commands that it runs. */
const variableOf = (server: number, value: number): string => `ATS_MCP_${server}_${value}_SECRET`;

/** A JSON string or array is one of TOML, too. */
const toml = (value: string | readonly string[] | number): string => JSON.stringify(value);
const table = (entries: readonly (readonly [string, string])[]): string =>
  `{${entries.map(([key, value]) => `${toml(key)}=${toml(value)}`).join(',')}}`;

/** codex passes variables on under their own names, and obeys some of them itself. */
const programKeys = (argv: readonly string[], names: readonly (readonly [string, string])[]) => {
  const own = names.map(([name]) => name);
  const [command, ...args] = withoutKeys(argv, own, names);
  return {
    command: toml(command),
    args: toml(args),
    env_vars: toml(names.map(([, variable]) => variable)),
  };
};

const codexKeys = (
  { place, tools, startMs, callMs }: HandedServer,
  names: readonly (readonly [string, string])[],
): Readonly<Record<string, string>> => ({
  ...(place.kind === 'http'
    ? { url: toml(place.url), env_http_headers: table(names) }
    : programKeys(place.argv, names)),
  ...(tools === null ? {} : { enabled_tools: toml(tools) }),
  startup_timeout_sec: toml(startMs / 1_000),
  tool_timeout_sec: toml(callMs / 1_000),
  // Nobody can be asked; the user's configuration is the permission.
  default_tools_approval_mode: toml('approve'),
});

export const handToCodex = (servers: readonly HandedServer[]): HandOver => {
  const handed = servers.map((server, at) => {
    const { place } = server;
    const values = Object.entries(place.kind === 'http' ? place.headers : place.env);
    const named = values.map(([name], index) => [name, variableOf(at, index)] as const);
    return {
      keys: Object.entries(codexKeys(server, named)).map(
        ([key, value]) => `mcp_servers.${server.name}.${key}=${value}`,
      ),
      variables: values.map(([, value], index) => [variableOf(at, index), value] as const),
    };
  });
  return {
    arguments: handed.flatMap(({ keys }) => keys.flatMap((key) => ['-c', key])),
    variables: Object.fromEntries(handed.flatMap(({ variables }) => variables)),
    file: null,
  };
};

/** `mcpServers` of the Agent Client Protocol. Over HTTP only for agents that can. */
export const handToAcp = (
  servers: readonly HandedServer[],
  speaksHttp: boolean,
): readonly object[] =>
  servers.flatMap<object>(({ name, place }) => {
    const pairs = (given: Readonly<Record<string, string>>) =>
      Object.entries(given).map(([key, value]) => ({ name: key, value }));
    if (place.kind === 'http')
      return speaksHttp
        ? [{ type: 'http', name, url: place.url, headers: pairs(place.headers) }]
        : [];
    return [{ name, ...commandOf(place), env: pairs(place.env) }];
  });
