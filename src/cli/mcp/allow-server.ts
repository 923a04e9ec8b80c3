import { changedTools } from '../../actors/mcp/tool-changes.ts';
import { plural } from '../../machines/plural.ts';
import type { CommandContext } from '../client/command-context.ts';
import { loadConfig } from '../config/config.ts';
import { mcpServersFrom } from '../config/mcp-servers.ts';
import { requireTrustedOutside } from '../config/trusted-places.ts';
import { isYes } from '../output/ask.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { ensurePrivateFolder } from '../server/private-files.ts';
import { UsageError } from '../words/usage-error.ts';
import { listServer, projectPins, serverSurroundings } from './list-server.ts';

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
