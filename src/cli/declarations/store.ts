import { defineCommand, readsConfig } from './command.ts';

export const storeDeclaration = defineCommand({
  name: 'store',
  group: 'setup',
  describe: 'Carry tasks and journal to another database, whole, or bring its tables up to date',
  words: [
    { name: 'action', describe: 'What to do', choices: ['export', 'import', 'migrate'] },
    {
      name: 'file',
      describe: 'File to write or to read; import takes an empty store only',
      optional: true,
      completes: 'file',
    },
  ],
  flags: {
    'dry-run': {
      type: 'switch',
      actions: ['migrate'],
      default: false,
      describe: 'Print the statements, and change nothing',
    },
  },
  common: readsConfig,
  examples: [
    ['agent store export basket.store', 'write every row of the store to a file'],
    ['agent store import basket.store', 'take them into the store that store.url names now'],
    ['agent store migrate --dry-run', 'what a new version would change in PostgreSQL'],
  ],
  run: async (context, args) =>
    (await import('../setup/store-command.ts')).storeCommand(context, args),
});
