import { roles } from '../../machines/task.ts';
import * as commands from '../tasks/commands.ts';
import { type Command, type Common, command, onTask } from './command.ts';
import { type RunFlags, refuseRunFlags, runOptionsOf, withRunFlags } from './run-flags.ts';

type CreateArgs = Common & commands.CreateArgs & RunFlags & { readonly run?: boolean; readonly async: boolean };

export const create = command<CreateArgs>({
  command: 'create <description>',
  describe: 'create a task; prints its id',
  instead: 'put the description in quotes, and name each dependency by a flag of its own: --deps <id> --deps <id>',
  builder: (parser) =>
    withRunFlags(parser)
      .positional('description', { type: 'string', demandOption: true, describe: 'what shall be done' })
      .options({
        title: { type: 'string', requiresArg: true, describe: 'one line; else the first line of the description' },
        deps: {
          type: 'string',
          array: true,
          requiresArg: true,
          describe: 'a task that must be complete first; more by commas or more flags',
        },
        priority: { type: 'number', requiresArg: true, describe: '0 (first) to 4' },
        label: { type: 'string', array: true, requiresArg: true, describe: 'a label' },
        role: { type: 'string', choices: roles, requiresArg: true, describe: 'the role that shall work on it' },
        run: { type: 'boolean', implies: 'role', describe: 'run it at once, by that role, with the flags of a run' },
      })
      .example('agent create "Fix the sum" --deps bd-a1b2', 'a task that waits for another')
      .example('agent create "Fix the sum" --role engineer --run', 'create it and watch it run'),
  run: async (context, args) => {
    if (args.run && args.role !== undefined) {
      const request = { role: args.role, options: runOptionsOf(args), json: args.json };
      return commands.createAndRun(context, args, request, args.async);
    }
    refuseRunFlags(args);
    return commands.create(context, args);
  },
});

type RunArgs = Common & RunFlags & { readonly task_id: string; readonly async: boolean };

/** One command for each role. */
export const runs: readonly Command[] = roles.map((role) =>
  command<RunArgs>({
    command: `${role} <task_id>`,
    describe: `run the ${role} on a task`,
    instead: `one task at a time; put the text of a new task in quotes: agent ${role} "<text>"`,
    builder: (parser) =>
      withRunFlags(onTask(parser)).example(`agent ${role} bd-a1b2`, 'run it and watch; with --async return at once'),
    run: (context, args) =>
      commands.run(context, { role, task: args.task_id, options: runOptionsOf(args), json: args.json }, args.async),
  }),
);
