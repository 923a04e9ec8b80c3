import type { Argv } from 'yargs';
import type { CommandContext } from '../tasks/commands.ts';

export interface Common {
  readonly json: boolean;
  readonly project: string | undefined;
  readonly config: string | undefined;
  readonly start: boolean;
}

/** `command` is its pattern in the syntax of yargs. */
export interface Command<Args = never> {
  readonly command: string;
  readonly describe: string;
  /** The advice for an extra word. Default: one task at a time, or the command's help. */
  readonly instead?: string;
  readonly builder: (parser: Argv) => Argv;
  readonly run: (context: CommandContext, args: Args) => Promise<number>;
}

export type OnTask = Common & { readonly task_id: string; readonly reason?: string };

export const onTask = (parser: Argv): Argv =>
  parser.positional('task_id', {
    type: 'string',
    demandOption: true,
    describe: 'Task id, such as bd-a1b2',
  });
export const withReason = (parser: Argv): Argv =>
  onTask(parser).option('reason', {
    type: 'string',
    requiresArg: true,
    describe: 'Reason, kept with the task',
  });

/** Checks a command against its own arguments, then drops their type for the table. */
export const defineCommand = <Args>(given: Command<Args>): Command => given as unknown as Command;
