import { z } from 'zod';
import type { CommandContext } from '../client/command-context.ts';
import { findServer } from '../client/find-server.ts';
import { getJson } from '../client/http-request.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { type Cell, renderTable } from '../output/render/table.ts';
import { stripControls } from '../output/safe-text.ts';

const healthMs = 5_000;

const nodeSchema = z.looseObject({
  name: z.string(),
  this: z.boolean(),
  state: z.string(),
  slots: z.number(),
  running: z.number(),
  waiting: z.number(),
  version: z.string().optional(),
  roles: z.array(z.string()).nullish(),
});
type ShownNode = z.infer<typeof nodeSchema>;
const healthSchema = z.looseObject({ nodes: z.array(nodeSchema).optional() });

const header = ['NAME', 'STATE', 'RUNNING', 'SLOTS', 'WAITING', 'VERSION', 'ROLES'];

const nodeRow = ({ name, state, running, slots, waiting, version, roles, ...node }: ShownNode) =>
  [
    node.this ? `${name} (this)` : name,
    state,
    String(running),
    String(slots),
    String(waiting),
    version ?? '-',
    roles?.length === 0 ? 'none' : (roles?.join(', ') ?? 'all'),
  ].map((text): Cell => ({ text: stripControls(text) }));

/** Prints the servers that share the store. Exit code 6 if no server of this project runs. */
export const showNodes = async ({ project, io, json }: CommandContext): Promise<number> => {
  const address = await findServer(project);
  if (address === null) {
    if (json) io.json({ running: false });
    else io.out(`no server runs for ${project.root}; start one with: agent server start`);
    return exitCodes.unavailable;
  }
  const { nodes } = healthSchema.parse(await getJson(address, '/health', healthMs));
  if (json) io.json({ running: true, nodes: nodes ?? [] });
  else if (nodes === undefined)
    io.out(
      'this server shares its store with no other one: the tasks are in a file of this machine',
    );
  else io.out(renderTable(header, nodes.map(nodeRow), io.width));
  return exitCodes.done;
};
