import { replayTask } from '../watch/replay-command.ts';
import { explainTask, wait } from '../watch/watch-commands.ts';
import type { MergeArgs, WorkArgs } from '../work/work-commands.ts';
import { type Command, type Common, command, type OnTask, onTask } from './command.ts';

const attemptOption = {
  attempt: { type: 'number', requiresArg: true, describe: 'of this attempt; else the latest' },
} as const;

/** What an attempt changed. */
export const work: readonly Command[] = [
  command<Common & WorkArgs>({
    command: 'diff <task_id>',
    describe: 'show what an attempt changed, as a patch',
    builder: (parser) =>
      onTask(parser).options(attemptOption).example('agent diff bd-a1b2', 'also while the attempt is at work'),
    run: async (context, args) => (await import('../work/work-commands.ts')).showDiff(context, args),
  }),
  command<Common & MergeArgs>({
    command: 'merge <task_id>',
    describe: "bring what an attempt changed into the project's branch",
    builder: (parser) =>
      onTask(parser)
        .options({
          ...attemptOption,
          force: { type: 'boolean', default: false, describe: 'also when the attempt is not complete' },
          squash: { type: 'boolean', default: false, describe: 'as one commit, also when the branch has moved on' },
        })
        .example('agent merge bd-a1b2', 'move the branch on to it')
        .example('agent merge bd-a1b2 --squash', 'as one commit'),
    run: async (context, args) => (await import('../work/work-commands.ts')).mergeWork(context, args),
  }),
];

/** Where a task is, how it came there, when it is over. */
export const watching: readonly Command[] = [
  command<Common & { readonly task_ids: readonly string[]; readonly timeout: number | undefined }>({
    command: 'wait <task_ids..>',
    describe: 'wait until tasks are over; 0 when all are complete',
    builder: (parser) =>
      parser
        .positional('task_ids', { type: 'string', array: true, demandOption: true, describe: 'task ids' })
        .option('timeout', { type: 'number', requiresArg: true, describe: 'seconds; then it ends with 124' })
        .example('agent wait bd-a1 bd-b2 --timeout 600', 'in a script, after agent --async'),
    run: (context, { task_ids, timeout }) => wait(context, task_ids.map(String), timeout),
  }),
  command<OnTask & { readonly at: number | undefined }>({
    command: 'replay <task_id>',
    describe: 'run the charts over what was recorded of a task, and show where they come to',
    builder: (parser) =>
      onTask(parser)
        .option('at', { type: 'number', requiresArg: true, describe: 'only up to this number of the journal' })
        .example('agent replay bd-a1b2 --at 42', 'the task as it was then'),
    run: (context, { task_id, at }) => replayTask(context, task_id, at),
  }),
  command<OnTask>({
    command: 'explain <task_id>',
    describe: 'say why a task is where it is, and what may happen next',
    builder: (parser) => onTask(parser).example('agent explain bd-a1', 'every guard with its value'),
    run: (context, { task_id }) => explainTask(context, task_id),
  }),
];
