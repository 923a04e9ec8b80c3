import { roles } from '../../machines/task.ts';
import * as commands from '../tasks/commands.ts';
import { type Command, type Common, defineCommand, onTask } from './command.ts';
import { type RunFlags, refuseRunFlags, runOptionsOf, withRunFlags } from './run-flags.ts';

type CreateCommandArgs = Common &
  commands.CreateArgs &
  RunFlags & { readonly run?: boolean; readonly async: boolean };

export const createCommand = defineCommand<CreateCommandArgs>({
  command: 'create <description>',
  describe: 'Create a task and print its id',
  instead:
    'put the description in quotes, and give each dependency its own flag: --deps <id> --deps <id>',
  builder: (parser) =>
    withRunFlags(parser)
      .positional('description', { type: 'string', demandOption: true, describe: 'What to do' })
      .options({
        title: {
          type: 'string',
          requiresArg: true,
          describe: 'Title; default: the first line of the description',
        },
        deps: {
          type: 'string',
          array: true,
          requiresArg: true,
          describe: 'Task that must be complete first; separate several by commas',
        },
        priority: {
          type: 'number',
          requiresArg: true,
          describe: 'Priority, 0 (first) to 4 (last)',
        },
        label: { type: 'string', array: true, requiresArg: true, describe: 'Label' },
        role: {
          type: 'string',
          choices: roles,
          requiresArg: true,
          describe: 'Role that works on the task',
        },
        run: { type: 'boolean', implies: 'role', describe: 'Run the task at once with that role' },
      })
      .example('agent create "Fix the sum" --deps bd-a1b2', 'create a task that waits for another')
      .example(
        'agent create "Fix the sum" --role engineer --run',
        'create a task and watch it run',
      ),
  run: async (context, args) => {
    if (args.run && args.role !== undefined) {
      const request = { role: args.role, options: runOptionsOf(args), json: args.json };
      return commands.createAndRun(context, args, request, args.async);
    }
    refuseRunFlags(args);
    return commands.createOnly(context, args);
  },
});

type RunArgs = Common & RunFlags & { readonly task_id: string; readonly async: boolean };

export const roleCommands: readonly Command[] = roles.map((role) =>
  defineCommand<RunArgs>({
    command: `${role} <task_id>`,
    describe: `Run the ${role} on a task`,
    instead: `one task at a time; put the text of a new task in quotes: agent ${role} "<text>"`,
    builder: (parser) =>
      withRunFlags(onTask(parser)).example(
        `agent ${role} bd-a1b2`,
        'run the task and watch; add --async to return at once',
      ),
    run: (context, args) =>
      commands.runTask(
        context,
        { role, task: args.task_id, options: runOptionsOf(args), json: args.json },
        args.async,
      ),
  }),
);
