import { requireId } from '../../actors/engine/queries/task-id.ts';
import { roles } from '../../machines/task.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { defineCommand, startsServer } from './command.ts';
import { asyncFlag } from './common-flags.ts';
import { runFlags, runOptionsOf } from './runs.ts';

const { 'when-ready': _, 'max-cost': __, ...flagsOfEachRun } = runFlags;

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
  notesLimits: true,
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
    'max-cost': {
      type: 'number',
      value: 'usd',
      describe:
        'Maximum cost of the whole run in USD, with what it has cost where its tasks go on; there they wait for more',
    },
    label: {
      type: 'text',
      value: 'label',
      many: true,
      describe: 'Only tasks with this label, and what they depend on',
    },
    priority: {
      type: 'number',
      value: '0-4',
      describe: 'Only tasks with this priority, and what they depend on',
    },
    limit: {
      type: 'number',
      value: 'n',
      describe: 'Start at most n tasks, dependencies included, the first priority first',
    },
    'dry-run': {
      type: 'switch',
      describe: 'Show what would run, in which order, and start nothing',
    },
    yes: {
      type: 'switch',
      short: 'y',
      describe: 'Do not ask before more than 10 tasks that you did not name',
    },
  },
  examples: [
    ['agent run', 'run all open tasks and watch'],
    ['agent run bd-a1b2 --role engineer', 'run a task and all that it depends on'],
    ['agent run --dry-run', 'see what would run'],
    ['agent run --label bug --limit 5 --max-cost 10', 'at most five, for at most 10 USD'],
  ],
  run: async (context, args) => {
    const { mayStart, planTasks, runTasks, startTasks } = await import('../graph/run-tasks.ts');
    const taskIds = args.task_ids.map(requireId);
    // The cost is that of the whole run, not of an attempt.
    const { 'max-cost': max_cost_usd, label, priority, limit, ...others } = args;
    const chosen = { max_cost_usd, labels: label, priority, limit };
    const request = { taskIds, role: args.role, options: runOptionsOf(others), chosen };
    if (args['dry-run'] === true) return planTasks(context, request);
    if (args.yes !== true && !(await mayStart(context, request))) return exitCodes.cancelled;
    return args.async ? startTasks(context, request) : runTasks(context, request);
  },
});
