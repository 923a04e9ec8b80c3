import { completion, type Shell, shells } from './setup/completion-command.ts';
import { type Command, type Common, defineCommand } from './table/command.ts';
import { linkCommands, setupCommands } from './table/housekeeping.ts';
import { createCommand, roleCommands } from './table/runs.ts';
import {
  changeCommand,
  dependencyCommand,
  listCommand,
  logsCommand,
  respondCommand,
  serverChangeCommand,
  showCommand,
} from './table/tasks.ts';
import { pruneCommand, watchCommands, workCommands } from './table/watching.ts';

const completing: Command = defineCommand<Common & { readonly shell: Shell }>({
  command: 'completion <shell>',
  describe: 'Print a completion script for your shell',
  builder: (parser) =>
    parser
      .positional('shell', { choices: shells, demandOption: true })
      .example('eval "$(agent completion bash)"', 'turn completion on in this session'),
  run: async ({ io, json }, { shell }) => completion(io, json, shell, commandTable),
});

/** In the order of the help. */
export const commandTable: readonly Command[] = [
  createCommand,
  ...roleCommands,
  showCommand,
  listCommand,
  changeCommand('close', 'Mark a task complete', 'the work was done by hand'),
  serverChangeCommand(
    'cancel',
    'Cancel a task and stop its agent',
    'stop it; retry starts it again',
  ),
  serverChangeCommand(
    'retry',
    'Run a failed or cancelled task again',
    'start another attempt by the same role',
  ),
  changeCommand(
    'reopen',
    'Put a complete task back in the queue',
    'the work was not done after all',
  ),
  respondCommand,
  ...workCommands,
  logsCommand,
  ...watchCommands,
  dependencyCommand,
  ...setupCommands,
  pruneCommand,
  ...linkCommands,
  completing,
];
