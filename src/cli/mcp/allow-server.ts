import { connectMcp } from '../../actors/mcp/connection.ts';
import { createPins, type Pins } from '../../actors/mcp/pins.ts';
import type { McpServer } from '../../actors/mcp/port.ts';
import { changedTools } from '../../actors/mcp/tool-changes.ts';
import { type McpSurroundings, placeFor } from '../../actors/mcp/transports.ts';
import { createEgresses } from '../../actors/network/egress.ts';
import { childEnvironment } from '../../actors/process/run-command.ts';
import { plural } from '../../machines/plural.ts';
import type { CommandContext } from '../client/command-context.ts';
import { loadConfig } from '../config/config.ts';
import { mcpServersFrom } from '../config/mcp-servers.ts';
import { stateFiles } from '../config/places/project.ts';
import { sandboxFor } from '../config/sandbox.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { requireTrustedOutside } from '../config/trusted-places.ts';
import { isYes } from '../output/ask.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { ensurePrivateFolder } from '../server/secrets/private-files.ts';
import { version } from '../version.ts';
import { UsageError } from '../words/usage-error.ts';

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

/** Shows what changed in the list of a server, and takes it as the list that is known. */
export const allowServer = async (
  context: CommandContext,
  { config: file, allow: name }: { readonly config: string | undefined; readonly allow: string },
): Promise<number> => {
  const { project, env, io } = context;
  const loaded = loadConfig({ config: file, project }, env);
  requireTrustedOutside(loaded, project, env);
  const { config } = loaded;
  const server = mcpServersFrom(config.mcp, project.root).find((each) => each.name === name);
  if (server === undefined)
    throw new UsageError(`mcp.servers has no ${name}; agent doctor shows your servers`);
  const { tools } = await listServer(server, serverSurroundings(context, config));
  const pins = projectPins(context);
  const changes = changedTools(tools, pins.of(name) ?? []);
  for (const { why } of changes) io.out(why);
  if (changes.length === 0) {
    io.out(`${name}: ${plural(tools.length, 'tool')}, as you know them`);
    return exitCodes.done;
  }
  const question = `allow ${plural(changes.length, 'tool')} of ${name} as shown? [y/N] `;
  const said = io.ask === null ? 'yes' : await io.ask(question);
  if (said === null || !isYes(said)) return exitCodes.failed;
  ensurePrivateFolder(project.stateDir);
  await pins.keep(name, tools);
  io.out(`${name}: ${plural(changes.length, 'tool')} allowed`);
  return exitCodes.done;
};
