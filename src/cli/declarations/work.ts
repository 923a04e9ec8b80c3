import { inPager } from '../output/in-pager.ts';
import {
  type CliCommand,
  defineCommand,
  pages,
  readsConfig,
  reasonFlag,
  startsServer,
  taskWord,
  taskWords,
} from './command.ts';
import { asyncFlag } from './common-flags.ts';

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
    words: [{ ...taskWords, optional: true }],
    flags: {
      ...attemptFlag,
      all: {
        type: 'switch',
        default: false,
        describe: 'Merge all complete work that is not merged',
      },
      force: {
        type: 'switch',
        default: false,
        describe: 'Merge an attempt that is not complete, or has an open pull request',
      },
      squash: {
        type: 'switch',
        default: false,
        describe: 'Merge as one commit, whatever merge.style says',
      },
      ff: {
        type: 'switch',
        default: false,
        conflicts: 'squash',
        describe: 'Fast-forward the branch, which must not have moved on',
      },
      verify: {
        type: 'switch',
        default: true,
        describe: 'Land it without testing the merged tree',
      },
      'dry-run': {
        type: 'switch',
        default: false,
        describe: 'Say in which order what would be tested, and merge nothing',
      },
    },
    common: startsServer,
    examples: [
      ['agent merge bd-a1b2', 'tested on the branch as it is now, then one commit'],
      ['agent merge bd-a1 bd-b2', 'in the order of dependencies'],
      ['agent merge --all', 'all complete work'],
    ],
    run: async (context, args) =>
      (await import('../work/merge-command.ts')).mergeWork(context, args),
  }),
  defineCommand({
    name: 'update',
    group: 'work',
    describe: "Bring the project's branch into the work of a task, and test it",
    words: [taskWord],
    flags: { ...asyncFlag },
    common: startsServer,
    examples: [['agent update bd-a1b2', 'another attempt resolves what conflicts or fails']],
    run: async (context, args) =>
      (await import('../work/merge-command.ts')).updateWork(context, args),
  }),
  defineCommand({
    name: 'undo',
    group: 'work',
    describe: 'Take back what landed for a task, in a tested commit; the task is open again',
    words: [taskWord],
    flags: {
      'with-dependents': {
        type: 'switch',
        default: false,
        describe: 'First undo landed work that depends on it',
      },
    },
    common: startsServer,
    examples: [['agent undo bd-a1b2', 'a commit that reverts it; nothing of later work is lost']],
    run: async (context, args) =>
      (await import('../work/merge-command.ts')).undoWork(context, args),
  }),
  defineCommand({
    name: 'publish',
    group: 'work',
    describe: 'Push the work of a task, and open its pull request or bring it up to date',
    words: [taskWord],
    flags: {
      draft: { type: 'switch', default: false, describe: 'Open it as a draft' },
      base: { type: 'text', value: 'branch', describe: 'The branch that it goes to' },
      fix: {
        type: 'switch',
        default: false,
        describe: 'Let another attempt mend what its checks and comments say',
      },
    },
    common: startsServer,
    examples: [['agent publish bd-a1b2', 'to the repository of the remote origin']],
    run: async (context, args) =>
      (await import('../work/publish-command.ts')).publishWork(context, args),
  }),
  defineCommand({
    name: 'pr',
    group: 'work',
    describe: 'Show how pull requests stand, and why they are not merged yet',
    words: [{ ...taskWord, optional: true }],
    flags: {},
    common: startsServer,
    examples: [
      ['agent pr', 'all that are open'],
      ['agent pr bd-a1b2', 'its checks, its review, what it waits for'],
    ],
    run: async (context, args) =>
      (await import('../work/publish-command.ts')).showPullRequests(context, args),
  }),
  defineCommand({
    name: 'discard',
    group: 'work',
    describe: 'Refuse the work of an attempt: it is not offered, merged or built on any more',
    words: [taskWord],
    flags: { ...attemptFlag, ...reasonFlag },
    common: startsServer,
    examples: [
      ['agent discard bd-a1b2 --reason "done by hand"', 'its branch stays until agent prune'],
    ],
    run: async (context, args) =>
      (await import('../work/work-commands.ts')).discardWork(context, args),
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
    superseded: {
      type: 'switch',
      default: false,
      describe:
        'Also remove unmerged branches of superseded, failed, discarded or deleted work, and beside',
    },
  },
  common: readsConfig,
  examples: [['agent prune --dry-run', 'see what would go; work that is not merged always stays']],
  run: async (context, { config, superseded, 'dry-run': dryRun }) =>
    (await import('../work/prune-command.ts')).prune(context, { config, superseded, dryRun }),
});
