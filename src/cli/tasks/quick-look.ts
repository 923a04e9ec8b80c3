import type { CommandContext } from '../client/command-context.ts';
import type { Common } from '../declarations/command.ts';
import type { Invocation } from '../invocation.ts';
import type { Io } from '../output/io.ts';
import { type ListArgs, listActive, listTasks, showWithPager } from './look-commands.ts';

/** A line that only looks, in its plain form. Its arguments are those that the grammar would read. */
export interface QuickLook {
  readonly command: 'list' | 'ps' | 'show';
  readonly args: Readonly<Record<string, unknown>>;
}

const names: ReadonlyMap<string, QuickLook['command']> = new Map([
  ['list', 'list'],
  ['ls', 'list'],
  ['ps', 'ps'],
  ['show', 'show'],
  ['status', 'show'],
]);
const plainWord = /^\w[\w.-]*$/;
const wholeNumber = /^[1-9]\d{0,8}$/;

/** Null for what the grammar should read, or refuse. */
const readFlags = (words: readonly string[]): Readonly<Record<string, unknown>> | null => {
  const [flag, value = '', ...rest] = words;
  const all = words.slice(1);
  if (flag === undefined) return {};
  const isGiven = (more: Readonly<Record<string, unknown>> | null, own: object) =>
    more === null || Object.keys(own).some((name) => Object.hasOwn(more, name))
      ? null
      : { ...more, ...own };
  if (flag === '--json') return isGiven(readFlags(all), { json: true });
  if (flag === '--all') return isGiven(readFlags(all), { all: true });
  if (flag === '--limit' && wholeNumber.test(value))
    return isGiven(readFlags(rest), { limit: Number(value) });
  return flag === '--status' && plainWord.test(value)
    ? isGiven(readFlags(rest), { status: value })
    : null;
};

const common = { json: false, start: true, pager: true };

/**
 * Reads the most frequent commands without the grammar of all, which takes longer to load than they
 * take to run. Null for every line that it does not know well.
 */
export const readQuickLook = ([name = '', ...words]: readonly string[]): QuickLook | null => {
  const command = names.get(name);
  if (command === undefined) return null;
  const [first = ''] = words;
  const isShow = command === 'show';
  if (isShow && !plainWord.test(first)) return null;
  const flags = readFlags(isShow ? words.slice(1) : words);
  if (flags === null) return null;
  if (command !== 'list' && Object.keys(flags).some((flag) => flag !== 'json')) return null;
  return { command, args: { ...common, ...flags, ...(isShow ? { task_id: first } : {}) } };
};

const look = (context: CommandContext, { command, args }: QuickLook): Promise<number> => {
  if (command === 'list') return listTasks(context, args as unknown as ListArgs);
  if (command === 'ps') return listActive(context);
  return showWithPager(context, { task_id: String(args['task_id']), pager: true });
};

/** @returns the exit code; never rejects */
export const runQuickLook = async (
  asked: QuickLook,
  invocation: Invocation,
  io: Io,
): Promise<number> => {
  try {
    const { createContext, withMeantId } = await import('../client/command-setup.ts');
    const context = createContext(asked.args as unknown as Common, invocation, io);
    return await withMeantId(context, () => look(context, asked));
  } catch (error) {
    const { reportError } = await import('../output/report-error.ts');
    return reportError(error, invocation, io);
  }
};
