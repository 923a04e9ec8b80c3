import * as handler from '../handler/handler-commands.ts';
import {
  rotateToken,
  showToken,
  startServerCommand,
  stopServerCommand,
} from '../server/server-commands.ts';
import { statusOfServer } from '../server/server-status.ts';
import { type Command, type Common, defineCommand } from './command.ts';

const serverActions = {
  start: startServerCommand,
  stop: stopServerCommand,
  status: statusOfServer,
} as const;

/** Commands that read the whole configuration are imported when they run. */
export const setupCommands: readonly Command[] = [
  defineCommand<Common & { readonly tracker: 'auto' | 'bd' | 'embedded' }>({
    command: 'init',
    describe:
      'Set up this folder as a project, with bd if it is installed, else with .beads/issues.jsonl',
    builder: (parser) =>
      parser
        .option('tracker', {
          choices: ['auto', 'bd', 'embedded'] as const,
          default: 'auto' as const,
          describe: 'Tracker that keeps the tasks',
        })
        .example('agent init', 'run bd init --prefix=bd, or create .beads/issues.jsonl'),
    run: async (context, { tracker, config }) =>
      (await import('../setup/init-command.ts')).init(context, tracker, config),
  }),
  defineCommand<
    Common & { readonly sandbox: boolean; readonly model: boolean; readonly journal: boolean }
  >({
    command: 'doctor',
    describe: 'Check the setup and print the effective configuration',
    builder: (parser) =>
      parser
        .option('sandbox', {
          type: 'boolean',
          default: false,
          describe: 'Try to escape from the sandbox in every known way, and report each',
        })
        .option('model', {
          type: 'boolean',
          default: false,
          describe: 'Send the model a small real request over each protocol, and report the answer',
        })
        .option('journal', {
          type: 'boolean',
          default: false,
          describe:
            'Check that no entry of the journal was changed, removed or added by another program',
        })
        .example('agent doctor --json', 'attach this to a bug report')
        .example(
          'agent doctor --model',
          'check whether agents can work with your own model server',
        ),
    run: async (context, { config, sandbox, model, journal }) => {
      if (journal)
        return (await import('../setup/check-journal-command.ts')).checkJournalCommand(context);
      if (model)
        return (await import('../setup/model-probe-command.ts')).probeModelCommand(context, config);
      const { doctor, probeSandbox } = await import('../setup/doctor-command.ts');
      return sandbox ? probeSandbox(context, config) : doctor(context, config);
    },
  }),
  defineCommand<Common>({
    command: 'roles',
    describe: 'List the roles: tools, limits, and the files that set them',
    builder: (parser) => parser.example('agent roles --json', 'the same as JSON'),
    run: async (context, { config }) => {
      const { listRoles } = await import('../roles/roles-command.ts');
      return listRoles(context, config);
    },
  }),
  defineCommand<Common & { readonly action: keyof typeof serverActions }>({
    command: 'server <action>',
    describe: "Start or stop this project's server, or show its status",
    builder: (parser) =>
      parser
        .positional('action', { choices: Object.keys(serverActions), demandOption: true })
        .example('agent server status', 'exits 6 if no server runs'),
    run: (context, { action }) => serverActions[action](context),
  }),
  defineCommand<Common & { readonly action: 'rotate' | undefined }>({
    command: 'token [action]',
    describe: "Print the server's token, or replace it (rotate)",
    builder: (parser) =>
      parser
        .positional('action', { choices: ['rotate'] as const })
        .example('agent token rotate', 'replace the token; the old one stops working'),
    run: (context, { action }) => (action === 'rotate' ? rotateToken(context) : showToken(context)),
  }),
];

export const linkCommands: readonly Command[] = [
  defineCommand<Common & { readonly force: boolean }>({
    command: 'register-handler',
    describe: 'Open agent:// links with this program; a link only shows a task',
    builder: (parser) =>
      parser
        .option('force', {
          type: 'boolean',
          default: false,
          describe: 'Replace the program that opens them now',
        })
        .example('agent register-handler', 'the server runs this on its first start'),
    run: (context, { force }) => handler.register(context, force),
  }),
  defineCommand<Common>({
    command: 'unregister-handler',
    describe: 'Stop opening agent:// links',
    builder: (parser) => parser.example('agent unregister-handler', 'undo register-handler'),
    run: (context) => handler.unregister(context),
  }),
];
