import type { Argv } from 'yargs';
import type { CommandContext } from '../tasks/commands.ts';

/** The flags that every command knows. */
export interface Common {
  readonly json: boolean;
  readonly project: string | undefined;
  readonly config: string | undefined;
  readonly start: boolean;
}

/** A command as data: how it is written, what it is for, its flags, and what it does. */
export interface Command<Args = never> {
  readonly command: string;
  readonly describe: string;
  /** What to do about a word that it does not take; else one task at a time, or its help. */
  readonly instead?: string;
  readonly builder: (parser: Argv) => Argv;
  readonly run: (context: CommandContext, args: Args) => Promise<number>;
}

/** The arguments of a command on one task. */
export type OnTask = Common & { readonly task_id: string; readonly reason?: string };

export const onTask = (parser: Argv): Argv =>
  parser.positional('task_id', { type: 'string', demandOption: true, describe: 'a task id, such as bd-a1b2' });
export const withReason = (parser: Argv): Argv =>
  onTask(parser).option('reason', { type: 'string', requiresArg: true, describe: 'why' });

/** Lets a command name its own arguments. */
export const command = <Args>(given: Command<Args>): Command => given as unknown as Command;
