import * as handler from '../handler/handler-commands.ts';
import { rotateToken, showToken, startServerCommand, stopServerCommand } from '../server/server-commands.ts';
import { statusOfServer } from '../server/server-status.ts';
import { type Command, type Common, command } from './command.ts';

const serverActions = { start: startServerCommand, stop: stopServerCommand, status: statusOfServer } as const;

/** What reads the whole configuration is loaded only when it is asked for. */
export const housekeeping: readonly Command[] = [
  command<Common & { readonly tracker: 'auto' | 'bd' | 'embedded' }>({
    command: 'init',
    describe: 'make this folder a project: with bd where bd is installed, else with .beads/issues.jsonl',
    builder: (parser) =>
      parser
        .option('tracker', {
          choices: ['auto', 'bd', 'embedded'] as const,
          default: 'auto' as const,
          describe: 'what keeps the tasks',
        })
        .example('agent init', 'runs bd init --prefix=bd, or makes .beads/issues.jsonl'),
    run: async (context, { tracker, config }) =>
      (await import('../setup/init-command.ts')).init(context, tracker, config),
  }),
  command<Common & { readonly sandbox: boolean; readonly model: boolean }>({
    command: 'doctor',
    describe: 'say what is used, why, and what is missing; prints the effective configuration',
    builder: (parser) =>
      parser
        .option('sandbox', {
          type: 'boolean',
          default: false,
          describe: 'try to break out of the sandbox instead, in every way that we know of',
        })
        .option('model', {
          type: 'boolean',
          default: false,
          describe: 'make a small real request of the model instead, over each protocol that could be meant',
        })
        .example('agent doctor --json', 'for a bug report')
        .example('agent doctor --model', 'a server of your own: can agents work with it?'),
    run: async (context, { config, sandbox, model }) => {
      if (model) return (await import('../setup/model-probe-command.ts')).probeModelCommand(context, config);
      const { doctor, probeSandbox } = await import('../setup/doctor-command.ts');
      return sandbox ? probeSandbox(context, config) : doctor(context, config);
    },
  }),
  command<Common>({
    command: 'roles',
    describe: 'list the roles: what each may do, where that comes from, what the project narrows',
    builder: (parser) => parser.example('agent roles --json', 'for programs'),
    run: async (context, { config }) => {
      const { listRoles } = await import('../roles/roles-command.ts');
      return listRoles(context, config);
    },
  }),
  command<Common & { readonly action: keyof typeof serverActions }>({
    command: 'server <action>',
    describe: "start, stop, or ask for the status of this project's server",
    builder: (parser) =>
      parser
        .positional('action', { choices: Object.keys(serverActions), demandOption: true })
        .example('agent server status', 'exit code 6 when none runs'),
    run: (context, { action }) => serverActions[action](context),
  }),
  command<Common & { readonly action: 'rotate' | undefined }>({
    command: 'token [action]',
    describe: 'print the token of the server, or replace it (rotate)',
    builder: (parser) =>
      parser
        .positional('action', { choices: ['rotate'] as const })
        .example('agent token rotate', 'the old one is refused from now on'),
    run: (context, { action }) => (action === 'rotate' ? rotateToken(context) : showToken(context)),
  }),
];

/** Links of the scheme agent://. */
export const links: readonly Command[] = [
  command<Common & { readonly force: boolean }>({
    command: 'register-handler',
    describe: 'let this program open agent:// links, which only ever show a task',
    builder: (parser) =>
      parser
        .option('force', { type: 'boolean', default: false, describe: 'also when another program opens them now' })
        .example('agent register-handler', 'the server does it at its first start'),
    run: (context, { force }) => handler.register(context, force),
  }),
  command<Common>({
    command: 'unregister-handler',
    describe: 'no longer open agent:// links',
    builder: (parser) => parser.example('agent unregister-handler', 'takes back what register-handler did'),
    run: (context) => handler.unregister(context),
  }),
];
