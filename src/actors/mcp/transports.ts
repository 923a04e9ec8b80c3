import { lstatSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, isAbsolute, resolve, sep } from 'node:path';
import { programPaths } from '../sandbox/assistant-mounts.ts';
import { createNoSandbox } from '../sandbox/no-sandbox.ts';
import type { Network, OwnGit, Sandbox } from '../sandbox/port.ts';
import type { OpenPlace } from './connection.ts';
import { openHttp } from './http.ts';
import { McpError, type McpServer, type StdioLaunch } from './port.ts';
import { openStdio } from './stdio.ts';
import { withVariables } from './variables.ts';

/** Where the servers of an attempt run. */
export interface McpSurroundings {
  readonly root: string;
  readonly readable: readonly string[];
  readonly git: OwnGit | null | undefined;
  readonly sandbox: Sandbox;
  readonly networkOf: (server: Pick<McpServer, 'name'> & Pick<StdioLaunch, 'network'>) => Network;
  /** A folder with the user's commit, where no agent has worked; null: there is none. */
  readonly usersFiles: (() => Promise<string>) | null;
  /** The environment of every child process of the attempt. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables that the configuration may name: the environment of our own process. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** The folder of the agent, for a server that starts in an empty one. */
const workspaceVariable = 'AGENT_WORKSPACE';

/** False for a text that can be no path. */
const exists = (path: string): boolean => {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
};

/** `--file=tools/x.js` names a path after its option. */
const pathIn = (word: string): { readonly option: string; readonly path: string } => {
  const [, option = '', path = word] = /^(-[^=]*=)(.+)$/.exec(word) ?? [];
  return { option, path };
};

/** A word that may be a path below the folder where a program starts. */
const mayBePath = (word: string): boolean => {
  const { path } = pathIn(word);
  if (isAbsolute(path) || path.startsWith('-')) return false;
  return path === '.' || path.includes('/') || /\.\w{1,5}$/.test(path);
};

/** Whether a path leads to something below the folder. */
const isBelow = (path: string, folder: string): boolean => {
  const whole = resolve(folder, path);
  return `${whole}${sep}`.startsWith(`${folder}${sep}`) && exists(whole);
};

const inFolder = (word: string, folder: string): string => {
  const { option, path } = pathIn(word);
  return mayBePath(word) && isBelow(path, folder) ? `${option}${resolve(folder, path)}` : word;
};

/** A server used to start in the folder of the agent; these words then named something in it. */
const reliedOn = ([program, ...args]: StdioLaunch['argv'], root: string): readonly string[] => {
  const name = basename(program);
  return args.flatMap((word, at) => {
    const before = args[at - 1];
    const module = word.replaceAll('.', '/');
    const candidates = [
      ...(mayBePath(word) ? [pathIn(word).path] : []),
      ...(before === '-m' ? [`${module}.py`, module] : []),
      ...(/^(npx|bunx|pnpx|npm|pnpm|yarn)$/.test(name) ? [`node_modules/.bin/${word}`] : []),
    ];
    return candidates.filter((path) => !path.startsWith('-') && isBelow(path, root)).slice(0, 1);
  });
};

const hintOf = (argv: StdioLaunch['argv'], root: string): string | null => {
  const [found] = reliedOn(argv, root);
  return found === undefined
    ? null
    : `it starts in an empty folder, not in the project, so ${found} there is not found by itself; name a committed file by its path in args, or install the program`;
};

/** The launch with paths in the user's commit. @throws McpError where agents could change that */
const resolvedLaunch = async (
  launch: StdioLaunch,
  { root, usersFiles }: McpSurroundings,
): Promise<{ readonly argv: StdioLaunch['argv']; readonly folder: string | null }> => {
  const { argv } = launch;
  const [program, ...args] = argv;
  const words = program.includes('/') ? argv : args;
  if (!words.some(mayBePath)) return { argv, folder: null };
  if (usersFiles === null) {
    const inside = words.find((word) => mayBePath(word) && isBelow(pathIn(word).path, root));
    if (inside === undefined) return { argv, folder: null };
    throw new McpError(
      `${inside} is in a folder that agents change (workspace.mode: shared, or workspace.merge); name a path outside the project`,
    );
  }
  const folder = await usersFiles();
  const resolved = program.includes('/') ? inFolder(program, folder) : program;
  return { argv: [resolved, ...args.map((word) => inFolder(word, folder))], folder };
};

const openProgram = async (
  { name }: McpServer,
  launch: StdioLaunch,
  around: McpSurroundings,
): Promise<OpenPlace> => {
  const { root, readable, git, sandbox, env, variables } = around;
  const { argv, folder } = await resolvedLaunch(launch, around);
  // Only its own worktree: in a shared folder each command is guarded, and this one never ends.
  const mayWrite = launch.mayWrite && git != null;
  const shown = folder === null ? [] : [folder];
  const program = {
    argv: argv.map((word) => word.replaceAll(`\${${workspaceVariable}}`, root)) as [
      string,
      ...string[],
    ],
    root,
    readable: [
      ...readable,
      ...shown,
      ...launch.readPaths,
      ...programPaths(argv[0], [homedir(), root, ...shown]),
    ],
    git: mayWrite ? git : undefined,
    readOnly: !mayWrite,
    inOwnFolder: true,
    network: around.networkOf({ name, network: launch.network }),
    env: { ...env, [workspaceVariable]: root, ...withVariables(launch.env, variables) },
  };
  return {
    open: openStdio(launch.sandboxed ? sandbox : createNoSandbox(), program),
    roots: [root],
    hint: hintOf(argv, root),
  };
};

/** @throws McpError for a variable that is not set, or a path that agents could change */
export const placeFor = async (server: McpServer, around: McpSurroundings): Promise<OpenPlace> => {
  const { place } = server;
  if (place.kind === 'stdio') return openProgram(server, place, around);
  if (place.kind === 'refused') throw new McpError(place.why);
  const open = openHttp(place.url, withVariables(place.headers, around.variables));
  // Where our folders are is nothing to somebody else's machine.
  return { open, roots: [], hint: null };
};
