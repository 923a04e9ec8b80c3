import { connectMcp } from '../../actors/mcp/connection.ts';
import { createPins, type Pins } from '../../actors/mcp/pins.ts';
import type { McpServer } from '../../actors/mcp/port.ts';
import { type McpSurroundings, transportFor } from '../../actors/mcp/transports.ts';
import { childEnvironment } from '../../actors/process/run-command.ts';
import type { CommandContext } from '../client/command-context.ts';
import type { Config } from '../config/config-schema.ts';
import { stateFiles } from '../config/project.ts';
import { sandboxFor } from '../config/sandbox.ts';
import { version } from '../version.ts';

/** The surroundings of an attempt that only reads. */
export const serverSurroundings = (
  { project, env }: CommandContext,
  config: Config,
): McpSurroundings => ({
  root: project.root,
  readable: [],
  git: null,
  sandbox: sandboxFor(config, project),
  env: childEnvironment({ ...env }),
  variables: env,
});

export const projectPins = ({ project }: CommandContext): Pins =>
  createPins(stateFiles(project.stateDir).mcpTools);

/** Starts the server, lists its tools, and ends it. @throws McpError */
export const listServer = async (server: McpServer, around: McpSurroundings) => {
  const { name, startMs } = server;
  const open = transportFor(server, around);
  const { signal } = new AbortController();
  const { tools, left, close } = await connectMcp({ server: name, version, startMs, signal, open });
  await close();
  return { tools, left };
};
