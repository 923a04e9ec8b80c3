import { type CliCommand, defineCommand } from './declarations/command.ts';
import { hubCommand } from './declarations/hub.ts';
import { runManyCommand } from './declarations/run-many.ts';
import { retryCommand, roleCommands } from './declarations/runs.ts';
import { linkCommands, setupCommands } from './declarations/setup.ts';
import {
  cancelCommand,
  closeCommand,
  createCommand,
  deleteCommand,
  dependencyCommand,
  editCommand,
  importCommand,
  listCommand,
  psCommand,
  reopenCommand,
  showCommand,
  usageCommand,
} from './declarations/tasks.ts';
import { logsCommand, respondCommand, watchCommands } from './declarations/watch.ts';
import { pruneCommand, workCommands } from './declarations/work.ts';
import { workflowCommand } from './declarations/workflow.ts';

const completing = defineCommand({
  name: 'completion',
  group: 'setup',
  describe: 'Print a completion script for your shell',
  words: [{ name: 'shell', describe: 'Your shell', choices: ['bash', 'zsh', 'fish'] }],
  flags: {},
  common: [],
  examples: [['eval "$(agent completion bash)"', 'turn completion on in this session']],
  run: async ({ io, json }, { shell }) =>
    (await import('./setup/completion-command.ts')).completion(io, json, shell),
});

/** In the order of the help. The code of a command is imported when it runs. */
export const commandTable: readonly CliCommand[] = [
  createCommand,
  importCommand,
  runManyCommand,
  ...roleCommands,
  workflowCommand,
  listCommand,
  psCommand,
  showCommand,
  editCommand,
  closeCommand,
  cancelCommand,
  retryCommand,
  reopenCommand,
  deleteCommand,
  respondCommand,
  ...workCommands,
  logsCommand,
  ...watchCommands,
  dependencyCommand,
  usageCommand,
  ...setupCommands,
  hubCommand,
  pruneCommand,
  ...linkCommands,
  completing,
];
