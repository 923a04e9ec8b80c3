import { requireId } from '../../actors/engine/task-id.ts';
import { roles } from '../../machines/task.ts';
import { defineCommand, startsServer } from './command.ts';
import { asyncFlag } from './common-flags.ts';
import { runFlags, runOptionsOf } from './run-flags.ts';

const { 'when-ready': _, ...flagsOfEachRun } = runFlags;

export const runManyCommand = defineCommand({
  name: 'run',
  group: 'runs',
  describe: 'Run every open task, or some, in the order of their dependencies',
  words: [
    {
      name: 'task_ids',
      optional: true,
      many: true,
      completes: 'task',
      describe: 'Tasks to run, with all that they depend on; default: every open task',
    },
  ],
  notesTracker: 'once',
  common: startsServer,
  flags: {
    role: {
      type: 'text',
      value: 'role',
      choices: roles,
      describe: 'Role for tasks without the label role:<role> that no role ran before',
    },
    ...asyncFlag,
    ...flagsOfEachRun,
  },
  examples: [
    ['agent run', 'run all open tasks and watch'],
    ['agent run bd-a1b2 --role engineer', 'run a task and all that it depends on'],
  ],
  run: async (context, args) => {
    const { runTasks, startTasks } = await import('../graph/run-tasks.ts');
    const taskIds = args.task_ids.map(requireId);
    const request = { taskIds, role: args.role, options: runOptionsOf(args) };
    return args.async ? startTasks(context, request) : runTasks(context, request);
  },
});
