import { inPager } from '../output/in-pager.ts';
import {
  type CliCommand,
  defineCommand,
  pages,
  readsConfig,
  startsServer,
  taskWord,
  taskWords,
} from './command.ts';

const attemptFlag = {
  attempt: { type: 'number', value: 'n', describe: 'Attempt number; default: the latest' },
} as const;

export const workCommands: readonly CliCommand[] = [
  defineCommand({
    name: 'diff',
    group: 'work',
    describe: 'Show the changes of an attempt as a patch',
    words: [taskWord],
    flags: {
      ...attemptFlag,
      comments: {
        type: 'switch',
        describe: 'Show the comments of reviews in the patch; default: on a terminal',
      },
    },
    common: pages,
    examples: [['agent diff bd-a1b2', 'works while the attempt runs, too']],
    run: async (context, args) => {
      const { showDiff } = await import('../work/work-commands.ts');
      const { io, env, json } = context;
      return inPager(io, { env, pager: args.pager, json }, (paged) =>
        showDiff({ ...context, io: paged }, args),
      );
    },
  }),
  defineCommand({
    name: 'merge',
    group: 'work',
    describe: "Merge the changes of tasks into the project's branch",
    words: [taskWords],
    flags: {
      ...attemptFlag,
      force: {
        type: 'switch',
        default: false,
        describe: 'Merge an attempt that is not complete',
      },
      squash: {
        type: 'switch',
        default: false,
        describe: 'Merge as one commit; works when the branch has moved on',
      },
    },
    common: readsConfig,
    examples: [
      ['agent merge bd-a1b2', 'fast-forward the branch'],
      ['agent merge bd-a1 bd-b2 --squash', 'each as one commit, in the order of dependencies'],
    ],
    run: async (context, args) =>
      (await import('../work/merge-command.ts')).mergeWork(context, args),
  }),
  defineCommand({
    name: 'review',
    group: 'work',
    describe: 'Comment on the changes of an attempt, send it back or approve it',
    words: [taskWord],
    flags: {
      ...attemptFlag,
      comment: {
        type: 'text',
        value: 'place',
        second: 'text',
        many: true,
        describe: 'A place (file, file:12 or file:12-14) and the comment',
      },
      'request-changes': {
        type: 'switch',
        default: false,
        conflicts: 'approve',
        describe: 'Start the next attempt on the same branch, with the comments',
      },
      approve: { type: 'switch', default: false, describe: 'The work is good as it is' },
    },
    common: startsServer,
    examples: [
      [
        'agent review bd-a1b2 --comment src/a.js:12 "Use const" --request-changes',
        'the next attempt answers each comment',
      ],
    ],
    run: async (context, args) =>
      (await import('../work/review-command.ts')).reviewWork(context, args),
  }),
];

export const pruneCommand: CliCommand = defineCommand({
  name: 'prune',
  group: 'work',
  describe: 'Remove branches and worktrees of merged work, and old histories',
  words: [],
  flags: {
    'dry-run': {
      type: 'switch',
      default: false,
      describe: 'Only print what would be removed',
    },
  },
  common: readsConfig,
  examples: [['agent prune --dry-run', 'see what would go; work that is not merged always stays']],
  run: async (context, { config, 'dry-run': dryRun }) =>
    (await import('../work/prune-command.ts')).prune(context, { config, dryRun }),
});

export const watchCommands: readonly CliCommand[] = [
  defineCommand({
    name: 'watch',
    group: 'watch',
    describe: 'Show the board of all tasks, kept up to date; q quits',
    words: [],
    flags: {},
    common: startsServer,
    examples: [
      ['agent watch', 'j and k move, Enter shows a task, ? is help'],
      ['agent watch --json', 'every event of the server, one per line'],
    ],
    run: async (context) => (await import('../board/board-command.ts')).watchBoard(context),
  }),
  defineCommand({
    name: 'wait',
    group: 'watch',
    describe: 'Wait until tasks finish; exits 0 if all completed',
    words: [{ name: 'task_ids', describe: 'Task ids', many: true, completes: 'task' }],
    flags: {
      timeout: {
        type: 'number',
        value: 'seconds',
        describe: 'How long to wait; then the exit code is 124',
      },
    },
    common: startsServer,
    examples: [['agent wait bd-a1 bd-b2 --timeout 600', 'in a script, after runs with --async']],
    run: async (context, { task_ids, timeout }) =>
      (await import('../watch/watch-commands.ts')).wait(context, task_ids, timeout),
  }),
  defineCommand({
    name: 'replay',
    group: 'watch',
    describe: 'Replay the recorded events of a task through the state machine',
    words: [{ ...taskWord, optional: true }],
    flags: {
      at: {
        type: 'number',
        value: 'seq',
        describe: 'Stop at this seq of the journal (agent logs --json shows it)',
      },
      verify: {
        type: 'text',
        value: 'file',
        completes: 'file',
        conflicts: 'at',
        describe: 'Prove that a file of agent export is as it was written, in place of a task',
      },
    },
    common: readsConfig,
    examples: [
      ['agent replay bd-a1b2 --at 42', 'the task as it was at that time'],
      ['agent replay --verify bd-a1b2.html', 'exits 1 if anything in the file was changed'],
    ],
    run: async (context, { task_id, at, verify }) => {
      if (verify === undefined)
        return (await import('../watch/replay-command.ts')).replayTask(context, task_id, at);
      const { verifyRecording } = await import('../recording/verify-command.ts');
      return verifyRecording(context, verify, task_id);
    },
  }),
  defineCommand({
    name: 'export',
    group: 'watch',
    describe: 'Write a task with its journal and changes as one file for a browser',
    words: [taskWord],
    flags: {
      output: {
        type: 'text',
        value: 'file',
        short: 'o',
        completes: 'file',
        describe: 'File to write, - for standard output; default: <task_id>.html',
      },
      force: { type: 'switch', default: false, describe: 'Replace a file that exists' },
    },
    common: readsConfig,
    examples: [['agent export bd-a1b2 -o task.html', 'open it without a server']],
    run: async (context, args) =>
      (await import('../recording/export-command.ts')).exportTask(context, args),
  }),
  defineCommand({
    name: 'explain',
    group: 'watch',
    describe: 'Explain why a task is in its state and what may happen next',
    words: [taskWord],
    flags: {},
    common: startsServer,
    examples: [['agent explain bd-a1', 'every guard and its value']],
    run: async (context, { task_id }) =>
      (await import('../watch/watch-commands.ts')).explainTask(context, task_id),
  }),
];
