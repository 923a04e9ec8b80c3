import { isFreeText } from '../../actors/engine/queries/task-id.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { textIn } from '../../machines/json.ts';
import { findMovedProject } from '../config/places/moved-project.ts';
import type { CliCommand, Common, Flags, Word } from '../declarations/command.ts';
import type { Invocation } from '../invocation.ts';
import { closest } from '../output/closest.ts';
import type { Io } from '../output/io.ts';
import type { Values } from '../words/check-words.ts';
import { UsageError } from '../words/usage-error.ts';
import { CallError, type Client } from './client.ts';
import type { CommandContext } from './command-context.ts';
import { connect } from './connect.ts';
import { readTask, tasksIn } from './task-answers.ts';

const matchesAtMost = 8;

const ambiguousId = (text: string, found: readonly TaskView[]): UsageError => {
  const shown = found
    .slice(0, matchesAtMost)
    .map(({ task_id, title }) => `\n  ${task_id}  ${title}`);
  const more = found.length > matchesAtMost ? '\n  …' : '';
  return new UsageError(
    `${JSON.stringify(text)} is in the ids of several tasks; give more of one:${shown.join('')}${more}`,
  );
};

/** The task of an id, or of a beginning or end that only one id has. @throws CallError, UsageError */
export const findTask = async (client: Client, text: string): Promise<TaskView> => {
  try {
    return await readTask(client, text);
  } catch (error) {
    const isUnknown = error instanceof CallError && error.code === 'task_not_found';
    if (!isUnknown || !/^[\w.+-]{1,128}$/.test(text)) throw error;
    const found = tasksIn(await client.call('list', { id: text, limit: matchesAtMost + 1 }));
    const [only] = found;
    if (only === undefined) throw error;
    if (found.length > 1) throw ambiguousId(text, found);
    return only;
  }
};

const looksAtMost = 200;

/**
 * The id that a wrong one was meant to be; null when none is close. Of many tasks it looks only at
 * those whose ids begin or end as the wrong one does.
 */
const nearestId = async (client: Client, wrong: string): Promise<string | null> => {
  const own = wrong.toLowerCase().replace(/^.*-(?=[^-]+$)/, '');
  if (!/^[\w.+-]{3,64}$/.test(own)) return null;
  const half = Math.ceil(own.length / 2);
  const parts = [own.slice(0, half), own.slice(-half)];
  const pages = await Promise.all(
    parts.map((id) => client.call('list', { id, limit: looksAtMost })),
  );
  return closest(
    wrong,
    pages.flatMap((page) => tasksIn(page).map(({ task_id }) => task_id)),
  );
};

interface Declared {
  readonly words: readonly Word[];
  readonly flags: Flags;
}

const namesOfIds = ({ words, flags }: Declared): readonly string[] => [
  ...words.filter(({ completes }) => completes === 'task').map(({ name }) => name),
  ...Object.entries(flags).flatMap(([name, flag]) =>
    flag.type !== 'switch' && flag.completes === 'task' ? [name] : [],
  ),
];

/** An id that no task has stays: the command checks the rest of its words first. */
const resolveId = async (client: Client, id: string): Promise<string> => {
  try {
    return (await findTask(client, id)).task_id;
  } catch (error) {
    if (error instanceof CallError && error.code === 'task_not_found') return id;
    throw error;
  }
};

/**
 * Completes shortened ids. Free text, which a role takes in the place of an id, and an empty text
 * stay. @throws UsageError for an id that several tasks have
 */
const resolveIds = async <Args extends object>(
  context: CommandContext,
  declared: Declared,
  args: Args,
): Promise<Args> => {
  const resolve = async (text: unknown): Promise<unknown> => {
    if (typeof text !== 'string' || text === '' || isFreeText(text)) return text;
    const client = await context.connection.files();
    const ids = text.split(',').map((id) => resolveId(client, id));
    return (await Promise.all(ids)).join(',');
  };
  const values: Values = Object.fromEntries(Object.entries(args));
  const resolved = await Promise.all(
    namesOfIds(declared).map(async (name) => {
      const value = values[name];
      const ids = Array.isArray(value) ? Promise.all(value.map(resolve)) : resolve(value);
      return [name, await ids] as const;
    }),
  );
  return { ...args, ...Object.fromEntries(resolved) };
};

export interface ReadyCommand {
  readonly context: CommandContext;
  /** The arguments, with ids completed. @throws UsageError for an id that several tasks have */
  readonly readArgs: () => Promise<Common>;
}

const once = <Value>(make: () => Value): (() => Value) => {
  let made: { readonly value: Value } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
};

/**
 * The project is looked for when it is needed: a file is verified in any folder. Its fields throw
 * UsageError when the project folder cannot be used.
 */
export const createContext = (
  { project: folder, config, start, json }: Common,
  { cwd, env, startServer, token }: Invocation,
  io: Io,
): CommandContext => {
  const project = once(() => ({ ...findMovedProject(folder, cwd, env), token }));
  const connection = once(() =>
    connect({ project: project(), config, start, io, env, startServer }),
  );
  return {
    cwd,
    io,
    env,
    json,
    config: config ?? (env['AGENT_SERVER_CONFIG'] || null),
    get project() {
      return project();
    },
    get connection() {
      return connection();
    },
  };
};

/** One module, so that one import loads what every command needs. */
export const setUpCommand = (
  command: CliCommand,
  args: Common,
  invocation: Invocation,
  io: Io,
): ReadyCommand => {
  const context = createContext(args, invocation, io);
  return {
    context,
    readArgs: async () => (command.findsTask === true ? args : resolveIds(context, command, args)),
  };
};

/** A task that does not exist is named with the one that was probably meant, if one is close. */
export const withMeantId = async <Answer>(
  context: CommandContext,
  run: () => Promise<Answer>,
): Promise<Answer> => {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof CallError) || error.code !== 'task_not_found') throw error;
    const wrong = textIn(error.facts, 'task_id');
    const look = async () => nearestId(await context.connection.files(), wrong ?? '');
    const meant = await look().catch(() => null);
    if (meant === null) throw error;
    throw new CallError(error.code, error.message, { ...error.facts, did_you_mean: meant });
  }
};
