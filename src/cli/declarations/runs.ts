import { roles } from '../../machines/task.ts';
import { usageError } from '../words/messages.ts';
import { type CliCommand, defineCommand, fileFlag, startsServer, taskWord } from './command.ts';
import { asyncFlag } from './common-flags.ts';
import { refuseRunFlags, runFlags, runOptionsOf } from './run-flags.ts';

export const createCommand = defineCommand({
  name: 'create',
  group: 'tasks',
  describe: 'Create a task and print its id',
  words: [
    {
      name: 'description',
      optional: true,
      describe: 'What to do; - reads standard input; without it, your editor opens',
    },
  ],
  instead:
    'put the description in quotes, and give each dependency its own flag: --deps <id> --deps <id>',
  notesTracker: 'once',
  common: startsServer,
  flags: {
    file: fileFlag,
    title: {
      type: 'text',
      value: 'text',
      describe: 'Title; default: the first line of the description',
    },
    deps: {
      type: 'text',
      value: 'ids',
      many: true,
      completes: 'task',
      describe: 'Task that must be complete first; separate several by commas',
    },
    priority: { type: 'number', value: 'n', describe: 'Priority, 0 (first) to 4 (last)' },
    label: { type: 'text', value: 'text', many: true, describe: 'Label' },
    role: { type: 'text', value: 'role', choices: roles, describe: 'Role that works on the task' },
    run: { type: 'switch', needs: 'role', describe: 'Run the task at once with that role' },
    ...asyncFlag,
    ...runFlags,
  },
  examples: [
    ['agent create "Fix the sum" --deps bd-a1b2', 'create a task that waits for another'],
    ['agent create -F task.md', 'the first line of the file is the title'],
    ['agent create "Fix the sum" --role engineer --run', 'create a task and watch it run'],
  ],
  run: async (context, args) => {
    const commands = await import('../tasks/commands.ts');
    const { textFrom } = await import('../tasks/read-description.ts');
    const { file, description: given } = args;
    if (args.run !== true) refuseRunFlags(args);
    const description = textFrom({ given, file }, context.env);
    if (description === null)
      throw usageError('word_missing', {
        command: 'create',
        word: '<description>',
        usage: 'agent create "<description>", or - to read it from standard input',
      });
    if (args.run === true && args.role !== undefined) {
      const request = { role: args.role, options: runOptionsOf(args), json: args.json };
      return commands.createAndRun(context, { ...args, description }, request, args.async);
    }
    return commands.createOnly(context, { ...args, description });
  },
});

export const roleCommands: readonly CliCommand[] = roles.map((role) =>
  defineCommand({
    name: role,
    group: 'runs',
    describe: `Run the ${role} on a task`,
    words: [taskWord],
    instead: `one task at a time; put the text of a new task in quotes: agent ${role} "<text>"`,
    notesTracker: 'once',
    common: startsServer,
    flags: { ...asyncFlag, ...runFlags },
    examples: [
      [`agent ${role} bd-a1b2`, 'run the task and watch'],
      [`agent ${role} bd-a1b2 --async`, 'run it in the background'],
    ],
    run: async (context, args) =>
      (await import('../tasks/commands.ts')).runTask(
        context,
        { role, task: args.task_id, options: runOptionsOf(args), json: args.json },
        args.async,
      ),
  }),
);
