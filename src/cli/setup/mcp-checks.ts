import { existsSync } from 'node:fs';
import { isAbsolute, sep } from 'node:path';
import type { Pins } from '../../actors/mcp/pins.ts';
import { McpError, type McpServer, type McpTool } from '../../actors/mcp/port.ts';
import { changedTools } from '../../actors/mcp/tool-changes.ts';
import { findProgram } from '../../actors/process/find-program.ts';
import { messageOf } from '../../machines/message-of.ts';
import { plural } from '../../machines/plural.ts';
import type { CommandContext } from '../client/command-context.ts';
import { redactorFor } from '../client/redactor.ts';
import { mcpServersFrom } from '../config/mcp-servers.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { listServer, projectPins, serverSurroundings } from '../mcp/allow-server.ts';
import { oneLine } from '../output/safe-text.ts';
import { accessText } from '../server/notes.ts';
import type { Check } from './backend-checks.ts';

type Surroundings = ReturnType<typeof serverSurroundings>;

const shownTools = 5;

/** The configured `tools` that the server does not have. */
const missingTools = ({ tools }: McpServer, found: readonly McpTool[]): readonly string[] =>
  (tools ?? []).filter((name) => !found.some(({ tool }) => tool === name));

const toolNamesText = (found: readonly Pick<McpTool, 'tool'>[]): string => {
  const names = found.slice(0, shownTools).map(({ tool }) => tool);
  return [...names, ...(found.length > shownTools ? ['…'] : [])].join(', ');
};

const toolChangesText = (server: string, found: readonly McpTool[], pins: Pins): string => {
  const pinned = pins.of(server);
  const changed = pinned === null ? [] : changedTools(found, pinned);
  if (changed.length === 0) return '';
  return `; ${plural(changed.length, 'tool')} not as you have known it: ${toolNamesText(changed)}; see and allow it: agent mcp --allow ${server}`;
};

/** What its program reaches, which no setting of a role or of the sandbox changes. */
const networkText = ({ place }: McpServer): string => {
  if (place.kind !== 'stdio') return '';
  return `; it reaches ${accessText(place.network === true || !place.sandboxed || place.network)}`;
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

const checkMcpServer = async (
  server: McpServer,
  around: Surroundings,
  pins: Pins,
): Promise<Omit<Check, 'check'>> => {
  const { name } = server;
  try {
    requireProgram(server, around);
    const { tools, left, hint } = await listServer(server, around);
    const [missing] = missingTools(server, tools);
    if (missing !== undefined)
      return { status: 'problem', detail: `${name}: it has no tool ${missing}, which tools names` };
    const leftOut = left.length === 0 ? '' : `; ${left.length} left out: ${left[0]}`;
    const changed = toolChangesText(name, tools, pins);
    const notes = `${networkText(server)}${hint === null ? '' : `; ${hint}`}`;
    return {
      status: tools.length === 0 || changed !== '' || hint !== null ? 'note' : 'ok',
      detail: `${name}: ${plural(tools.length, 'tool')}${tools.length === 0 ? '' : `: ${toolNamesText(tools)}`}${leftOut}${changed}${notes}`,
    };
  } catch (error) {
    const hidden = hiddenPath(server, around);
    // First: what the server said may be long, and is cut.
    const hint =
      hidden === undefined ? '' : `in the sandbox it cannot read ${hidden}: read_paths; `;
    return { status: 'problem', detail: `${name}: ${hint}${messageOf(error)}` };
  }
};

/** The user's MCP servers, all at once; each has the time limit of its start. */
export const mcpChecks = async (
  context: CommandContext,
  config: Config,
): Promise<readonly Check[]> => {
  const servers = mcpServersFrom(config.mcp, context.project.root);
  if (servers.length === 0) return [];
  const around = serverSurroundings(context, config);
  const pins = projectPins(context);
  const redact = redactorFor(context, config);
  return Promise.all(
    servers.map(async (server) => {
      const { status, detail } = await checkMcpServer(server, around, pins);
      return { check: 'mcp', status, detail: oneLine(redact(detail), 600) };
    }),
  );
};
