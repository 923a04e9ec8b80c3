import { existsSync } from 'node:fs';
import { isAbsolute, sep } from 'node:path';
import { connect } from '../../actors/mcp/connection.ts';
import { createPins } from '../../actors/mcp/pins.ts';
import { McpError, type McpServer, type McpTool } from '../../actors/mcp/port.ts';
import { type Surroundings, transportFor } from '../../actors/mcp/transports.ts';
import { findProgram } from '../../actors/process/find-program.ts';
import { childEnvironment } from '../../actors/process/run-command.ts';
import { messageOf } from '../../machines/message-of.ts';
import { plural } from '../../machines/plural.ts';
import type { CommandContext } from '../client/command-context.ts';
import { redactorFor } from '../client/redactor.ts';
import type { Config } from '../config/config-schema.ts';
import { mcpServersFrom } from '../config/mcp-servers.ts';
import { stateFiles } from '../config/project.ts';
import { sandboxFor } from '../config/sandbox.ts';
import { oneLine } from '../output/safe-text.ts';
import { version } from '../version.ts';
import type { Check } from './backend-checks.ts';

const shownTools = 5;

/** Of a list that names `tools`, those that the server does not have. */
const missingTools = ({ tools }: McpServer, found: readonly McpTool[]): readonly string[] =>
  (tools ?? []).filter((name) => !found.some(({ tool }) => tool === name));

const toolNames = (found: readonly McpTool[]): string => {
  const names = found.slice(0, shownTools).map(({ tool }) => tool);
  return [...names, ...(found.length > shownTools ? ['…'] : [])].join(', ');
};

const changedTools = (found: readonly McpTool[], pinned: readonly McpTool[] | null): string => {
  if (pinned === null) return '';
  const changed = found.filter(
    ({ name, fingerprint }) =>
      pinned.find((known) => known.name === name)?.fingerprint !== fingerprint,
  );
  if (changed.length === 0) return '';
  return `; ${plural(changed.length, 'tool')} changed since you have known the server: ${toolNames(changed)}`;
};

const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(`${folder}${sep}`);

/** The first argument that is a file which the sandbox does not show. */
const hiddenPath = ({ place }: McpServer, { root, sandbox }: Surroundings): string | undefined => {
  if (place.kind !== 'stdio' || !place.sandboxed || sandbox.shared === undefined) return undefined;
  const shown = [root, '/usr', ...place.readPaths];
  return place.argv
    .slice(1)
    .find(
      (arg) => isAbsolute(arg) && existsSync(arg) && !shown.some((folder) => isWithin(arg, folder)),
    );
};

/** @throws McpError */
const requireProgram = ({ place }: McpServer, { env }: Surroundings): void => {
  if (place.kind !== 'stdio') return;
  const [program] = place.argv;
  if (findProgram(program, env['PATH'] ?? '') === null)
    throw new McpError(
      isAbsolute(program)
        ? `${program} is not a program`
        : `${program} is not on PATH; install it, or give its whole path`,
    );
};

/** Starts the server as an attempt would, lists its tools, and ends it. */
const checkServer = async (
  server: McpServer,
  around: Surroundings,
  pinned: readonly McpTool[] | null,
): Promise<Omit<Check, 'check'>> => {
  const { name, startMs } = server;
  try {
    requireProgram(server, around);
    const open = transportFor(server, around);
    const { signal } = new AbortController();
    const { tools, left, close } = await connect({ server: name, version, startMs, signal, open });
    await close();
    const [missing] = missingTools(server, tools);
    if (missing !== undefined)
      return { status: 'problem', detail: `${name}: it has no tool ${missing}, which tools names` };
    const leftOut = left.length === 0 ? '' : `; ${left.length} left out: ${left[0]}`;
    const changed = changedTools(tools, pinned);
    return {
      status: tools.length === 0 || changed !== '' ? 'note' : 'ok',
      detail: `${name}: ${plural(tools.length, 'tool')}${tools.length === 0 ? '' : `: ${toolNames(tools)}`}${leftOut}${changed}`,
    };
  } catch (error) {
    const hidden = hiddenPath(server, around);
    const hint =
      hidden === undefined ? '' : `; in the sandbox it cannot read ${hidden}: read_paths`;
    return { status: 'problem', detail: `${name}: ${messageOf(error)}${hint}` };
  }
};

/** The user's MCP servers, all at once; each has the time limit of its start. */
export const mcpChecks = async (
  { project, env }: CommandContext,
  config: Config,
): Promise<readonly Check[]> => {
  const servers = mcpServersFrom(config.mcp, project.root);
  if (servers.length === 0) return [];
  const around: Surroundings = {
    root: project.root,
    readable: [],
    git: null,
    sandbox: sandboxFor(config, project),
    env: childEnvironment({ ...env }),
    variables: env,
  };
  const pins = createPins(stateFiles(project.stateDir).mcpTools);
  const redact = redactorFor({ project, env }, config);
  return Promise.all(
    servers.map(async (server) => {
      const { status, detail } = await checkServer(server, around, pins.of(server.name));
      return { check: 'mcp', status, detail: oneLine(redact(detail), 600) };
    }),
  );
};
