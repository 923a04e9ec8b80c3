import { completion, type Shell, shells } from './setup/completion-command.ts';
import { type Command, type Common, command } from './table/command.ts';
import { housekeeping, links } from './table/housekeeping.ts';
import { create, runs } from './table/runs.ts';
import { asking, changing, dependencies, list, logs, responding, show } from './table/tasks.ts';
import { watching, work } from './table/watching.ts';

const completing: Command = command<Common & { readonly shell: Shell }>({
  command: 'completion <shell>',
  describe: 'Print a completion script for your shell',
  builder: (parser) =>
    parser
      .positional('shell', { choices: shells, demandOption: true })
      .example('eval "$(agent completion bash)"', 'turn completion on in this session'),
  run: async ({ io, json }, { shell }) => completion(io, json, shell, commandTable),
});

/** In the order in which help shows them. */
export const commandTable: readonly Command[] = [
  create,
  ...runs,
  show,
  list,
  changing('close', 'Mark a task complete', 'the work was done by hand'),
  asking('cancel', 'Cancel a task and stop its agent', 'stop it; retry starts it again'),
  asking('retry', 'Run a failed or cancelled task again', 'start another attempt by the same role'),
  changing('reopen', 'Put a complete task back in the queue', 'the work was not done after all'),
  responding,
  ...work,
  logs,
  ...watching,
  dependencies,
  ...housekeeping,
  ...links,
  completing,
];
