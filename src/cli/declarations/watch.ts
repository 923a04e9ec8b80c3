import { inPager } from '../output/in-pager.ts';
import { type CliCommand, defineCommand, readsConfig, startsServer, taskWord } from './command.ts';

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
      [
        'agent replay --verify bd-a1b2.html',
        'exits 1 if the file was changed, 9 if it proves too little',
      ],
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
export const logsCommand = defineCommand({
  name: 'logs',
  group: 'watch',
  describe: 'Show the history of a task',
  words: [taskWord],
  flags: {
    follow: {
      type: 'switch',
      short: 'f',
      default: false,
      describe: 'Keep printing until the task ends',
    },
    full: {
      type: 'switch',
      default: false,
      describe: 'With the output of every call, and whole texts',
    },
    attempt: { type: 'number', value: 'n', describe: 'Only this attempt; default: all' },
  },
  common: [...startsServer, 'pager'],
  examples: [
    ['agent logs -f bd-a1b2', 'watch a running task'],
    ['agent logs --full bd-a1b2', 'what every command printed'],
  ],
  run: async (context, { task_id, follow, full, attempt, pager }) => {
    const { showLogs } = await import('../tasks/logs.ts');
    const { io, env, json } = context;
    return inPager(io, { env, pager: pager && !follow, json }, (paged) =>
      showLogs({ ...context, io: paged }, task_id, { follow, full, attempt }),
    );
  },
});

export const respondCommand = defineCommand({
  name: 'respond',
  group: 'watch',
  describe: "Answer an agent's question, or approve its calls",
  instead: 'put the answer in quotes',
  words: [taskWord, { name: 'answer', describe: 'Answer in words', optional: true }],
  flags: {
    allow: { type: 'switch', conflicts: 'deny', describe: 'Approve the calls' },
    attempt: {
      type: 'number',
      value: 'n',
      describe: 'Answer only this attempt; default: the live one',
    },
    deny: { type: 'switch', describe: 'Refuse the calls; the answer says why' },
  },
  common: startsServer,
  examples: [
    ['agent respond bd-a1 "the second one"', 'answer a question'],
    ['agent respond bd-a1 --deny "use the script"', 'refuse a call and say why'],
  ],
  run: async (context, args) => (await import('../runs/respond-command.ts')).respond(context, args),
});
