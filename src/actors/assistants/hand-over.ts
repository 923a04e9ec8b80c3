import type { HandedServer } from '../mcp/port.ts';
import { mcpPrefix } from '../mcp/port.ts';

/** An assistant reaches the user's MCP servers by these, beside its own arguments. */
export interface HandOver {
  readonly arguments: readonly string[];
  /** Secrets go here or into the file: every user of the machine can read a command line. */
  readonly variables: Readonly<Record<string, string>>;
  /** The content of a file that only we and the assistant read, or null. */
  readonly file: string | null;
}

export const noHandOver: HandOver = { arguments: [], variables: {}, file: null };

const bearerHeader = ({ token }: HandedServer): string => `Bearer ${token}`;

/** `--strict-mcp-config` keeps the project's servers out; this file names the user's. */
export const handToClaude = (servers: readonly HandedServer[], file: string): HandOver => {
  const entries = servers.map((server) => [
    server.name,
    { type: 'http', url: server.url, headers: { Authorization: bearerHeader(server) } },
  ]);
  const allowed = servers.map(({ name }) => `${mcpPrefix}${name}`);
  return {
    arguments: [`--mcp-config=${file}`, `--allowedTools=${allowed.join(',')}`],
    variables: {},
    file: JSON.stringify({ mcpServers: Object.fromEntries(entries) }),
  };
};

/** By its name, codex keeps this variable out of the commands that it runs. */
const codexVariable = 'ATS_MCP_SECRET';
/** Ours tells of a call that takes too long before codex gives up. */
const marginMs = 5_000;

/** A JSON string or number is one of TOML, too. */
const toml = (value: string | number): string => JSON.stringify(value);

export const handToCodex = (servers: readonly HandedServer[]): HandOver => {
  const settings = servers.flatMap(({ name, url, startMs, callMs }) =>
    Object.entries({
      url: toml(url),
      bearer_token_env_var: toml(codexVariable),
      startup_timeout_sec: toml((startMs + marginMs) / 1_000),
      tool_timeout_sec: toml((callMs + marginMs) / 1_000),
      // Nobody can be asked; the user's configuration is the permission.
      default_tools_approval_mode: toml('approve'),
    }).flatMap(([key, value]) => ['-c', `mcp_servers.${name}.${key}=${value}`]),
  );
  const [first] = servers;
  return {
    arguments: settings,
    variables: first === undefined ? {} : { [codexVariable]: first.token },
    file: null,
  };
};

/** For an agent that cannot call by HTTP: a program that passes lines on. */
const lineBridge = `
const { request } = require('node:http');
const headers = {
  authorization: 'Bearer ' + process.env.ATS_MCP_SECRET,
  'content-type': 'application/json',
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const call = request(process.argv[1], { method: 'POST', headers }, (answer) => {
    let text = '';
    answer.setEncoding('utf8').on('data', (piece) => (text += piece));
    answer.on('end', () => text && process.stdout.write(text + '\\n'));
  });
  call.on('error', () => process.exit(1)).end(line);
});
`;

/** `mcpServers` of the Agent Client Protocol. */
export const handToAcp = (
  servers: readonly HandedServer[],
  speaksHttp: boolean,
): readonly object[] =>
  servers.map((server) => {
    const { name, url, token } = server;
    if (speaksHttp)
      return {
        type: 'http',
        name,
        url,
        headers: [{ name: 'Authorization', value: bearerHeader(server) }],
      };
    const env = [{ name: 'ATS_MCP_SECRET', value: token }];
    return { name, command: process.execPath, args: ['-e', lineBridge, url], env };
  });
