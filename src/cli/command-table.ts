import { completion, type Shell, shells } from './setup/completion-command.ts';
import { type Command, type Common, command } from './table/command.ts';
import { housekeeping, links } from './table/housekeeping.ts';
import { create, runs } from './table/runs.ts';
import { asking, changing, dependencies, list, logs, responding, show } from './table/tasks.ts';
import { watching, work } from './table/watching.ts';

const completing: Command = command<Common & { readonly shell: Shell }>({
  command: 'completion <shell>',
  describe: 'print what a shell needs to complete these commands',
  builder: (parser) =>
    parser
      .positional('shell', { choices: shells, demandOption: true })
      .example('eval "$(agent completion bash)"', 'for this session'),
  run: async ({ io, json }, { shell }) => completion(io, json, shell, commandTable),
});
/** The commands of Spec 4 and CONTRACT 7, in the order in which help shows them. */
export const commandTable: readonly Command[] = [
  create,
  ...runs,
  show,
  list,
  changing('close', 'mark a task complete', 'done by hand'),
  asking('cancel', 'cancel a task and stop what it runs', 'stop it; the task can be retried'),
  asking('retry', 'run a failed or cancelled task again', 'another attempt by the same role'),
  changing('reopen', 'put a complete task back into the queue', 'it was not done after all'),
  responding,
  ...work,
  logs,
  ...watching,
  dependencies,
  ...housekeeping,
  ...links,
  completing,
];
