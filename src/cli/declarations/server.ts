import { defineCommand, startsServer } from './command.ts';

export const serverCommand = defineCommand({
  name: 'server',
  group: 'setup',
  describe: "Start, stop or restart this project's server, or show its status or log",
  words: [
    {
      name: 'action',
      describe: 'What to do',
      choices: ['start', 'stop', 'restart', 'status', 'logs'],
    },
  ],
  flags: {
    follow: {
      type: 'switch',
      short: 'f',
      actions: ['logs'],
      describe: 'logs: keep printing what is added',
    },
    lines: {
      type: 'number',
      value: 'n',
      short: 'n',
      actions: ['logs'],
      describe: 'logs: how many lines from the end; default: 100',
    },
  },
  common: startsServer,
  examples: [
    ['agent server status', 'exits 6 if no server runs'],
    ['agent server restart', "the server takes this shell's PATH, keys and configuration"],
    ['agent server logs -f', 'watch the log; Ctrl-C ends it'],
  ],
  run: async (context, { action, follow, lines, config, start }) => {
    if (action === 'logs')
      return (await import('../server/log-command.ts')).showServerLog(context, { follow, lines });
    if (action === 'status')
      return (await import('../server/server-status.ts')).statusOfServer(context);
    const commands = await import('../server/server-commands.ts');
    if (action === 'restart') return commands.restartServerCommand(context, { config, start });
    return action === 'start'
      ? commands.startServerCommand(context)
      : commands.stopServerCommand(context);
  },
});

export const nodesCommand = defineCommand({
  name: 'nodes',
  group: 'setup',
  describe: 'Show the servers that share the store of this project',
  words: [],
  flags: {},
  examples: [['agent nodes --json', 'for scripts: state, slots and waiting tasks of each']],
  run: async (context) => (await import('../server/nodes-command.ts')).showNodes(context),
});
