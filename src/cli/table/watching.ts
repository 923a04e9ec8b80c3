import { replayTask } from '../watch/replay-command.ts';
import { explainTask, wait } from '../watch/watch-commands.ts';
import type { MergeArgs, WorkArgs } from '../work/work-commands.ts';
import { type Command, type Common, defineCommand, type OnTask, onTask } from './command.ts';

const attemptOption = {
  attempt: { type: 'number', requiresArg: true, describe: 'Attempt number; default: the latest' },
} as const;

export const workCommands: readonly Command[] = [
  defineCommand<Common & WorkArgs>({
    command: 'diff <task_id>',
    describe: 'Show the changes of an attempt as a patch',
    builder: (parser) =>
      onTask(parser)
        .options(attemptOption)
        .example('agent diff bd-a1b2', 'works while the attempt runs, too'),
    run: async (context, args) =>
      (await import('../work/work-commands.ts')).showDiff(context, args),
  }),
  defineCommand<Common & MergeArgs>({
    command: 'merge <task_id>',
    describe: "Merge the changes of an attempt into the project's branch",
    builder: (parser) =>
      onTask(parser)
        .options({
          ...attemptOption,
          force: {
            type: 'boolean',
            default: false,
            describe: 'Merge an attempt that is not complete',
          },
          squash: {
            type: 'boolean',
            default: false,
            describe: 'Merge as one commit; works when the branch has moved on',
          },
        })
        .example('agent merge bd-a1b2', 'fast-forward the branch')
        .example('agent merge bd-a1b2 --squash', 'merge as one commit'),
    run: async (context, args) =>
      (await import('../work/work-commands.ts')).mergeWork(context, args),
  }),
];

export const pruneCommand: Command = defineCommand<Common & { readonly 'dry-run': boolean }>({
  command: 'prune',
  describe: 'Remove branches and worktrees of merged work, and old histories',
  builder: (parser) =>
    parser
      .option('dry-run', {
        type: 'boolean',
        default: false,
        describe: 'Only print what would be removed',
      })
      .example('agent prune --dry-run', 'see what would go; work that is not merged always stays'),
  run: async (context, { config, 'dry-run': dryRun }) =>
    (await import('../work/prune-command.ts')).prune(context, { config, dryRun }),
});

export const watchCommands: readonly Command[] = [
  defineCommand<
    Common & { readonly task_ids: readonly string[]; readonly timeout: number | undefined }
  >({
    command: 'wait <task_ids..>',
    describe: 'Wait until tasks finish; exits 0 if all completed',
    builder: (parser) =>
      parser
        .positional('task_ids', {
          type: 'string',
          array: true,
          demandOption: true,
          describe: 'Task ids',
        })
        .option('timeout', {
          type: 'number',
          requiresArg: true,
          describe: 'Seconds to wait; then the exit code is 124',
        })
        .example('agent wait bd-a1 bd-b2 --timeout 600', 'in a script, after runs with --async'),
    run: (context, { task_ids, timeout }) => wait(context, task_ids.map(String), timeout),
  }),
  defineCommand<OnTask & { readonly at: number | undefined }>({
    command: 'replay <task_id>',
    describe: 'Replay the recorded events of a task through the state machine',
    builder: (parser) =>
      onTask(parser)
        .option('at', {
          type: 'number',
          requiresArg: true,
          describe: 'Stop at this seq of the journal (agent logs --json shows it)',
        })
        .example('agent replay bd-a1b2 --at 42', 'the task as it was at that time'),
    run: (context, { task_id, at }) => replayTask(context, task_id, at),
  }),
  defineCommand<OnTask>({
    command: 'explain <task_id>',
    describe: 'Explain why a task is in its state and what may happen next',
    builder: (parser) => onTask(parser).example('agent explain bd-a1', 'every guard and its value'),
    run: (context, { task_id }) => explainTask(context, task_id),
  }),
];
