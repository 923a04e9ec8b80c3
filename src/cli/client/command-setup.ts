import { textIn } from '../../machines/json.ts';
import { findMovedProject } from '../config/moved-project.ts';
import type { CliCommand, Common } from '../declarations/command.ts';
import type { Invocation } from '../invocation.ts';
import type { Io } from '../output/io.ts';
import { CallError } from './client.ts';
import type { CommandContext } from './command-context.ts';
import { connect } from './connect.ts';
import { nearestId } from './find-task.ts';
import { resolveIds } from './resolve-ids.ts';

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
  { cwd, env, startServer }: Invocation,
  io: Io,
): CommandContext => {
  const project = once(() => findMovedProject(folder, cwd, env));
  const connection = once(() =>
    connect({ project: project(), config, start, io, env, startServer }),
  );
  return {
    ...{ cwd, io, env, json },
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
