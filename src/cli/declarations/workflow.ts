import { thoroughnessLevels } from '../../machines/thoroughness.ts';
import { defineCommand, reasonFlag, startsServer } from './command.ts';

const { reason } = reasonFlag;
const starts = { actions: ['start'] } as const;

export const workflowCommand = defineCommand({
  name: 'workflow',
  group: 'runs',
  describe: 'Start and follow workflows; check a workflow file',
  words: [
    {
      name: 'action',
      describe: 'What to do',
      choices: ['start', 'list', 'show', 'retry', 'cancel', 'check'],
    },
    {
      name: 'subject',
      optional: true,
      completes: 'workflow',
      describe:
        'start: feature, research or one of yours; show, retry, cancel: an id; check: a file',
    },
    { name: 'name', optional: true, describe: 'start: the feature, or the question' },
  ],
  notesTracker: 'once',
  common: startsServer,
  flags: {
    phase0: {
      type: 'text',
      value: 'steps',
      ...starts,
      describe: 'Optional steps: ask (default) a person, role, none, or names with commas',
    },
    product: {
      type: 'text',
      value: 'name',
      ...starts,
      describe: 'Product, for docs/market/<product>/; default: the project',
    },
    thoroughness: {
      type: 'text',
      value: 'level',
      choices: thoroughnessLevels,
      ...starts,
      describe: 'How thorough a research is; default: medium',
    },
    verify: {
      type: 'text',
      value: 'command',
      many: true,
      ...starts,
      describe: 'Command that must pass, and writes the reports that gates read',
    },
    model: { type: 'text', value: 'name', ...starts, describe: 'Model of its tasks' },
    reason: { ...reason, actions: ['cancel'] },
    limit: {
      type: 'number',
      value: 'n',
      actions: ['list'],
      describe: 'How many of those that are over; default: 50 on a terminal, else all',
    },
    all: {
      type: 'switch',
      actions: ['list'],
      describe: 'Every workflow, also on a terminal',
    },
  },
  examples: [
    [
      'agent workflow start feature "CSV export" --verify "npm test"',
      'from an idea to the rollout',
    ],
    ['agent workflow start research "Why is it slow?" --thoroughness quick', 'a report, no code'],
    ['agent workflow show wf-a1b2c', 'its phases, and what it waits for'],
    ['agent workflow retry wf-a1b2c', 'goes on with the phase that failed, as a new workflow'],
    ['agent workflow check my.yml', 'problems with their lines, or the shortest dead end'],
  ],
  run: async (context, args) => {
    if (args.action === 'check') {
      const { checkWorkflow } = await import('../workflows/check-workflow.ts');
      return checkWorkflow(context, args.subject);
    }
    return (await import('../workflows/workflow-commands.ts')).workflow(context, args);
  },
});
