import { findServer } from './client/find-server.ts';
import { createHttpClient } from './client/http-client.ts';
import { findProject } from './config/project.ts';
import { trackerWarning } from './config/tracker-warning.ts';
import type { Invocation } from './invocation.ts';
import type { Io } from './output/io.ts';
import { listTasks, showTask } from './tasks/look-commands.ts';

type LookCommand =
  | { readonly command: 'list'; readonly json: boolean; readonly status: string | undefined }
  | { readonly command: 'show'; readonly json: boolean; readonly taskId: string };

/**
 * The plainest forms of `list` and `show`; null for everything else, which the real parser handles.
 */
export const parseLook = (words: readonly string[]): LookCommand | null => {
  const [command, ...given] = words;
  if (given[given.indexOf('--status') + 1] === '--json' && given.includes('--status')) return null;
  const json = given.includes('--json');
  const rest = given.filter((word) => word !== '--json');
  const [first, second, more] = rest;
  if (command === 'list' && first === undefined) return { command, json, status: undefined };
  if (
    command === 'list' &&
    first === '--status' &&
    second !== undefined &&
    !second.startsWith('-') &&
    more === undefined
  )
    return { command, json, status: second };
  if (command === 'show' && first !== undefined && /^[A-Za-z]/.test(first) && second === undefined)
    return { command, json, taskId: first };
  return null;
};

/**
 * Asks a running server for `list` or `show` without loading the parser and the schemas, which take
 * longer than the rest. @returns the exit code; null, before any output, when the real command line
 * must run
 */
export const takeFastPath = async (
  { words, cwd, env }: Invocation,
  io: Io,
): Promise<number | null> => {
  const look = parseLook(words);
  if (look === null) return null;
  const lines: (() => void)[] = [];
  const later: Io = {
    out: (text) => void lines.push(() => io.out(text)),
    json: (value) => void lines.push(() => io.json(value)),
    err: (text) => void lines.push(() => io.err(text)),
    live: () => {},
  };
  try {
    const project = findProject(undefined, cwd, env);
    const address = await findServer(project);
    if (address === null) return null;
    const warning = trackerWarning(env, project.root);
    if (warning !== null) later.err(warning);
    const client = createHttpClient(address);
    const code =
      look.command === 'list'
        ? await listTasks(client, later, look.json, look.status)
        : await showTask(client, later, look.json, look.taskId);
    for (const say of lines) say();
    return code;
  } catch {
    return null;
  }
};
