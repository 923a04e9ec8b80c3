import type { Argv } from 'yargs';
import { roles } from '../../machines/task.ts';
import * as commands from '../commands.ts';
import { type Command, type Common, command, onTask } from './command.ts';

type CreateArgs = Common & commands.CreateArgs & { readonly run?: boolean; readonly async: boolean };

export const create = command<CreateArgs>({
  command: 'create <description>',
  describe: 'create a task; prints its id',
  instead: 'put the description in quotes, and name each dependency by a flag of its own: --deps <id> --deps <id>',
  builder: (parser) =>
    parser
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
        run: { type: 'boolean', implies: 'role', describe: 'run it at once, by that role' },
      })
      .example('agent create "Fix the sum" --deps bd-a1b2', 'a task that waits for another')
      .example('agent create "Fix the sum" --role engineer --run', 'create it and watch it run'),
  run: (context, args) =>
    args.run ? commands.createAndRun(context, args, args.async) : commands.create(context, args),
});

interface RunArgs extends Common {
  readonly task_id: string;
  readonly async: boolean;
  readonly model: string | undefined;
  readonly timeout: number | undefined;
  readonly 'max-turns': number | undefined;
  readonly 'max-tokens-total': number | undefined;
  readonly verify: string[] | undefined;
  readonly network: boolean | undefined;
}

const given = (options: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

const runFlags = (parser: Argv): Argv =>
  parser.options({
    model: { type: 'string', requiresArg: true, describe: "the model to call; 'scripted' plays the built-in fake" },
    timeout: { type: 'number', requiresArg: true, describe: 'wall limit of the attempt, in seconds' },
    'max-turns': { type: 'number', requiresArg: true, describe: 'limit of model calls' },
    'max-tokens-total': { type: 'number', requiresArg: true, describe: 'limit of tokens, in and out' },
    verify: { type: 'string', array: true, requiresArg: true, describe: 'a command that must pass before completion' },
    network: { type: 'boolean', describe: 'commands may reach the network, where sandbox.allow_task_network is set' },
  });

/** One command for each role. */
export const runs: readonly Command[] = roles.map((role) =>
  command<RunArgs>({
    command: `${role} <task_id>`,
    describe: `run the ${role} on a task`,
    instead: `one task at a time; put the text of a new task in quotes: agent ${role} "<text>"`,
    builder: (parser) =>
      runFlags(onTask(parser)).example(`agent ${role} bd-a1b2`, 'run it and watch; with --async return at once'),
    run: (context, args) => {
      const options = given({
        model: args.model,
        timeout_seconds: args.timeout,
        max_turns: args['max-turns'],
        max_tokens_total: args['max-tokens-total'],
        verify: args.verify,
        network: args.network,
      });
      return commands.run(context, { role, task: args.task_id, options, json: args.json }, args.async);
    },
  }),
);
