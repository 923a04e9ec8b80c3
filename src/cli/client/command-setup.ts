import type { CliCommand, Common } from '../declarations/command.ts';
import type { Invocation } from '../invocation.ts';
import type { Io } from '../output/io.ts';
import type { CommandContext } from '../tasks/commands.ts';
import { createContext } from './command-context.ts';
import { resolveIds } from './resolve-ids.ts';

export interface OpenedCommand {
  readonly context: CommandContext;
  /** The arguments, with ids completed. @throws UsageError for an id that several tasks have */
  readonly readArgs: () => Promise<Common>;
}

/** One module, so that one import loads what every command needs. */
export const openCommand = (
  command: CliCommand,
  args: Common,
  invocation: Invocation,
  io: Io,
): OpenedCommand => {
  const context = createContext(args, invocation, io);
  return {
    context,
    readArgs: async () => (command.findsTask === true ? args : resolveIds(context, command, args)),
  };
};
