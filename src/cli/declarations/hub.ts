import { defineCommand } from './command.ts';

export const hubCommand = defineCommand({
  name: 'hub',
  group: 'setup',
  describe: 'Start or stop the page of all your projects, or show it and who is signed in',
  words: [
    {
      name: 'action',
      describe: 'What to do',
      choices: ['start', 'stop', 'status', 'sessions', 'revoke'],
    },
    { name: 'id', describe: 'revoke: the session of a browser', optional: true },
  ],
  flags: {
    all: { type: 'switch', actions: ['revoke'], describe: 'revoke: every browser' },
  },
  common: ['json', 'config'],
  examples: [
    ['agent hub status --json', 'slug, address and state of each project; exits 6 if no hub runs'],
    ['agent hub sessions', 'the browsers that are signed in'],
    ['agent hub revoke --all', 'sign every browser out'],
  ],
  run: async (context, args) => (await import('../hub/hub-command.ts')).hubCommand(context, args),
});
