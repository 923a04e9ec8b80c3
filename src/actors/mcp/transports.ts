import { homedir } from 'node:os';
import { programPaths } from '../sandbox/assistant-mounts.ts';
import { createNoSandbox } from '../sandbox/no-sandbox.ts';
import type { OwnGit, Sandbox } from '../sandbox/port.ts';
import { withNetwork } from '../sandbox/port.ts';
import { openHttp } from './http.ts';
import type { PeerInput, Transport } from './peer.ts';
import { McpError, type McpServer, type StdioLaunch } from './port.ts';
import { openStdio } from './stdio.ts';
import { withVariables } from './variables.ts';

/** Where the servers of an attempt run. */
export interface McpSurroundings {
  readonly root: string;
  readonly readable: readonly string[];
  readonly git: OwnGit | null | undefined;
  readonly sandbox: Sandbox;
  /** The environment of every child process of the attempt. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables that the configuration may name: the environment of our own process. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

const openProgram = (launch: StdioLaunch, around: McpSurroundings) => {
  const { root, readable, git, sandbox, env, variables } = around;
  const [program] = launch.argv;
  // Only its own worktree: in a shared folder each command is guarded, and this one never ends.
  const mayWrite = launch.mayWrite && git != null;
  const own = launch.sandboxed ? withNetwork(sandbox, launch.network) : createNoSandbox();
  return openStdio(own, {
    argv: launch.argv,
    root,
    readable: [...readable, ...launch.readPaths, ...programPaths(program, [homedir(), root])],
    ...(mayWrite ? { git } : { readOnly: true }),
    env: { ...env, ...withVariables(launch.env, variables) },
  });
};

/** @throws McpError for a variable that is not set */
export const transportFor = (
  { place }: McpServer,
  around: McpSurroundings,
): ((input: PeerInput) => Transport) => {
  if (place.kind === 'stdio') return openProgram(place, around);
  if (place.kind === 'refused') throw new McpError(place.why);
  return openHttp(place.url, withVariables(place.headers, around.variables));
};
