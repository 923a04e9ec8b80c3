import { defineCommand } from './command.ts';

export const workflowCommand = defineCommand({
  name: 'workflow',
  group: 'runs',
  describe: 'Check a workflow file: that every phase can end',
  words: [
    { name: 'action', describe: 'What to do', choices: ['check'] },
    {
      name: 'file',
      completes: 'file',
      describe: 'A workflow file, or the name of a workflow such as feature',
    },
  ],
  flags: {},
  examples: [
    ['agent workflow check my.yml', 'problems with their lines, or the shortest dead end'],
  ],
  run: async (context, { file }) =>
    (await import('../workflows/check-workflow.ts')).checkWorkflow(context, file),
});
