import { findServer } from './client/find-server.ts';
import { createHttpClient } from './client/http-client.ts';
import { findProject } from './config/project.ts';
import { trackerWarning } from './config/tracker-warning.ts';
import type { Invocation } from './invocation.ts';
import type { Io } from './output/io.ts';
import { type ListArgs, listTasks, showTask } from './tasks/look-commands.ts';

type LookCommand =
  | { readonly command: 'list'; readonly args: ListArgs }
  | { readonly command: 'show'; readonly json: boolean; readonly taskId: string };

const flagValues = {
  '--status': (text: string) => ({ status: text }),
  '--label': (text: string) => ({ label: text }),
  '--limit': (text: string) => (/^[1-9]\d{0,8}$/.test(text) ? { limit: Number(text) } : null),
} as const;
const isValueFlag = (word: string): word is keyof typeof flagValues => word in flagValues;

const parseList = (words: readonly string[]): ListArgs | null => {
  let args: ListArgs = { json: false };
  const seen = new Set<string>();
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    if (seen.has(word)) return null;
    seen.add(word);
    if (word === '--json') args = { ...args, json: true };
    else if (word === '--all') args = { ...args, all: true };
    else if (isValueFlag(word)) {
      at += 1;
      const text = words[at] ?? '-';
      const value = text.startsWith('-') || text === '' ? null : flagValues[word](text);
      if (value === null) return null;
      args = { ...args, ...value };
    } else return null;
  }
  return args;
};

/**
 * The plainest forms of `list` and `show`; null for everything else, which the real parser handles.
 */
export const parseLook = (words: readonly string[]): LookCommand | null => {
  const [command, ...given] = words;
  if (command === 'list') {
    const args = parseList(given);
    return args === null ? null : { command, args };
  }
  const json = given.includes('--json');
  const [taskId, more] = given.filter((word) => word !== '--json');
  if (command === 'show' && taskId !== undefined && /^[A-Za-z]/.test(taskId) && more === undefined)
    return { command, json, taskId };
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
    width: io.width,
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
        ? await listTasks(client, later, look.args)
        : await showTask(client, later, look.json, look.taskId);
    for (const say of lines) say();
    return code;
  } catch {
    return null;
  }
};
