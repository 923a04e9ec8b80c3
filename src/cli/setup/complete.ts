import type { Params } from '../client/client.ts';
import { createContext } from '../client/command-setup.ts';
import { tasksIn } from '../client/task-answers.ts';
import { commandTable } from '../command-table.ts';
import type { CliCommand, Completes, Flag, Flags } from '../declarations/command.ts';
import { commonFlags, everywhere } from '../declarations/common-flags.ts';
import type { Invocation } from '../invocation.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { oneLine } from '../output/safe-text.ts';
import { parseWords } from '../words/parse-words.ts';

/** A word that fits, and what it means. */
type Candidate = readonly [value: string, says: string];
/** The shell completes the names of files. */
const files: Candidate = [':files', ''];

const completionsAtMost = 50;

const names: readonly Candidate[] = [
  ...commandTable.flatMap(({ name, aliases = [], describe }) =>
    [name, ...aliases].map((each): Candidate => [each, describe]),
  ),
  ['help', 'Show help'],
  ['version', 'Show the version'],
];

/** A context that starts nothing and prints no notes. */
const quietContext = (invocation: Invocation, io: Io) => {
  const { project, config } = parseWords(invocation.words, commonFlags).flags;
  const text = (value: unknown): string | undefined =>
    typeof value === 'string' ? value : undefined;
  const common = {
    project: text(project),
    config: text(config),
    start: false,
    json: false,
    pager: false,
    'token-file': undefined,
  };
  const quiet: Io = { ...io, err: () => {} };
  return createContext(common, invocation, quiet);
};

const taskIds = async (
  current: string,
  invocation: Invocation,
  io: Io,
): Promise<readonly Candidate[]> => {
  const client = await quietContext(invocation, io).connection.files();
  const wanted: Params<'list'> = current === '' ? { order: 'newest' } : { id: current };
  const tasks = tasksIn(await client.call('list', { ...wanted, limit: completionsAtMost }));
  return tasks.map(({ task_id, title }) => [task_id, title]);
};

/** After `start` the names of workflows, after `show` and `cancel` ids, after `check` files. */
const workflowWords = async (invocation: Invocation, io: Io): Promise<readonly Candidate[]> => {
  const { project, config, env, connection } = quietContext(invocation, io);
  if (invocation.words.includes('start')) {
    const find = await import('../workflows/find-workflow.ts');
    const configs = find.workflowConfigs(project, env, config);
    const found = find.workflowNames(find.workflowFolders(configs));
    return found.map((name) => [name, '']);
  }
  if (!['show', 'cancel'].some((action) => invocation.words.includes(action))) return [files];
  const { workflows } = await (await connection.server()).call('workflow.list', {});
  return workflows.map(({ workflow_id, kind, name }) => [workflow_id, `${kind}: ${name}`]);
};

const valuesOfFlag = async (
  { choices, completes }: { readonly choices?: readonly string[]; readonly completes?: Completes },
  current: string,
  invocation: Invocation,
  io: Io,
): Promise<readonly Candidate[]> => {
  if (choices !== undefined) return choices.map((choice) => [choice, '']);
  if (completes === 'task') return taskIds(current, invocation, io);
  if (completes === 'workflow') return workflowWords(invocation, io);
  if (completes === 'config_key')
    return (await import('../config/schema/config-keys.ts')).configKeys();
  return completes === undefined ? [] : [files];
};

const flagCandidates = (flags: Flags): readonly Candidate[] =>
  Object.entries(flags).flatMap(([name, flag]): readonly Candidate[] => {
    if (flag.hidden === true) return [];
    const isOn = flag.type === 'switch' && flag.default === true;
    return [[`--${isOn ? 'no-' : ''}${name}`, flag.describe]];
  });

const commandsNamed = (name: string | undefined): CliCommand | undefined =>
  commandTable.find((command) => command.name === name || command.aliases?.includes(name ?? ''));

const flagOf = (flags: Flags, word: string): Flag | undefined =>
  Object.entries(flags).find(
    ([name, { short }]) => word === `--${name}` || (short !== undefined && word === `-${short}`),
  )?.[1];

/** What may stand in the place of the last word. */
const candidatesFor = async (invocation: Invocation, io: Io): Promise<readonly Candidate[]> => {
  const current = invocation.words.at(-1) ?? '';
  const before = invocation.words.slice(0, -1);
  const all: Flags = Object.assign({}, ...commandTable.map(({ flags }) => flags), commonFlags);
  const [first] = parseWords(before, all).words;
  const command = commandsNamed(first);
  const flags: Flags = { ...command?.flags, ...commonFlags, ...everywhere };
  const value = (flag: Flag, text: string) =>
    flag.type === 'switch' ? [] : valuesOfFlag(flag, text, invocation, io);

  const [, name = '', text = ''] = /^(--[^=]+)=(.*)$/s.exec(current) ?? [];
  const assigned = flagOf(flags, name);
  if (assigned !== undefined)
    return (await value(assigned, text)).map(([each, says]) => [`${name}=${each}`, says]);
  const open = flagOf(flags, before.at(-1) ?? '');
  if (open !== undefined && open.type !== 'switch') return value(open, current);
  if (current.startsWith('-')) return flagCandidates(flags);
  if (first === undefined || first === 'help') return names;
  if (command === undefined) return [];
  const given = parseWords(before, flags).words.length - 1;
  const last = command.words.at(-1);
  const word = command.words[given] ?? (last?.many === true ? last : undefined);
  return word === undefined ? [] : valuesOfFlag(word, current, invocation, io);
};

const commas = /[\t\r\n]/g;

/** Prints a candidate per line, with a tab before what it means. Never fails: a shell is waiting. */
export const complete = async (invocation: Invocation, io: Io): Promise<number> => {
  const current = invocation.words.at(-1) ?? '';
  const found = await candidatesFor(invocation, io).catch(() => []);
  const fitting = found.filter((one) => one === files || one[0].startsWith(current));
  // An id may be completed from its end.
  const shown = fitting.length > 0 ? fitting : found;
  const lines = shown.map(([value, says]) => `${value}\t${oneLine(says, 60).replace(commas, ' ')}`);
  if (lines.length > 0) io.out(lines.join('\n'));
  return exitCodes.done;
};
