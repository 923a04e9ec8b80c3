import { roles } from '../../machines/task.ts';
import {
  type CliCommand,
  defineCommand,
  reasonFlag,
  startsServer,
  taskWord,
  taskWords,
} from './command.ts';
import { asyncFlag } from './common-flags.ts';
import { runFlags, runOptionsOf } from './run-flags.ts';

export const roleCommands: readonly CliCommand[] = roles.map((role) =>
  defineCommand({
    name: role,
    group: 'runs',
    describe: `Run the ${role} on a task`,
    words: [taskWord],
    instead: `one task at a time; put the text of a new task in quotes: agent ${role} "<text>"`,
    notesTracker: 'once',
    notesLimits: true,
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

const { 'when-ready': _, ...flagsOfRetry } = runFlags;

export const retryCommand = defineCommand({
  name: 'retry',
  group: 'runs',
  describe: 'Run failed or cancelled tasks again',
  words: [taskWords],
  common: startsServer,
  flags: { ...reasonFlag, ...asyncFlag, ...flagsOfRetry },
  examples: [
    ['agent retry bd-a1b2', 'start another attempt by the same role, and watch it'],
    ['agent retry bd-a1b2 --verify "npm test"', 'the rest as in the last attempt'],
  ],
  run: async (context, args) =>
    (await import('../tasks/change-commands.ts')).retryTasks(context, {
      ...args,
      options: runOptionsOf(args),
    }),
});
