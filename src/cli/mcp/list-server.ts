import { connectMcp } from '../../actors/mcp/connection.ts';
import { createPins, type Pins } from '../../actors/mcp/pins.ts';
import type { McpServer } from '../../actors/mcp/port.ts';
import { type McpSurroundings, placeFor } from '../../actors/mcp/transports.ts';
import { createEgresses } from '../../actors/network/egress.ts';
import { childEnvironment } from '../../actors/process/run-command.ts';
import type { CommandContext } from '../client/command-context.ts';
import type { Config } from '../config/config-schema.ts';
import { stateFiles } from '../config/project.ts';
import { sandboxFor } from '../config/sandbox.ts';
import { version } from '../version.ts';

type ListSurroundings = Omit<McpSurroundings, 'networkOf'>;

/** The surroundings of an attempt that only reads. */
export const serverSurroundings = (
  { project, env }: CommandContext,
  config: Config,
): ListSurroundings => ({
  root: project.root,
  readable: [],
  git: null,
  sandbox: sandboxFor(config, project),
  // An attempt takes them from the commit.
  usersFiles:
    config.workspace.mode === 'shared' || config.workspace.merge !== 'none'
      ? null
      : async () => project.root,
  env: childEnvironment({ ...env }),
  variables: env,
});

export const projectPins = ({ project }: CommandContext): Pins =>
  createPins(stateFiles(project.stateDir).mcpTools);

/** Starts the server, lists its tools, and ends it. @throws McpError */
export const listServer = async (server: McpServer, around: ListSurroundings) => {
  const { name, startMs } = server;
  const egresses = createEgresses(() => {});
  const networkOf: McpSurroundings['networkOf'] = ({ network }) => egresses.of(name, network);
  const { signal } = new AbortController();
  try {
    const place = await placeFor(server, { ...around, networkOf });
    const opened = await connectMcp({ server: name, version, startMs, signal, place });
    await opened.close();
    return { tools: opened.tools, left: opened.left, hint: place.hint };
  } finally {
    egresses.close();
  }
};
