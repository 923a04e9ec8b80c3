import type { Argv } from 'yargs';
import { roles } from '../machines/task.ts';
import * as commands from './commands.ts';
import { completion, type Shell, shells } from './completion-command.ts';
import { changeDependency, dependencyTree } from './dependency-commands.ts';
import * as handler from './handler/handler-commands.ts';
import * as look from './look-commands.ts';
import { UsageError } from './project.ts';
import { replayTask } from './replay-command.ts';
import { type RespondArgs, respond } from './respond-command.ts';
import { rotateToken, showToken, startServerCommand, statusOfServer, stopServerCommand } from './server-commands.ts';
import { explainTask, wait } from './watch-commands.ts';
import type { WorkArgs } from './work-commands.ts';

/** The flags that every command knows. */
export interface Common {
  readonly json: boolean;
  readonly project: string | undefined;
  readonly config: string | undefined;
  readonly start: boolean;
}

/** A command as data: how it is written, what it is for, its flags, and what it does. */
export interface Command<Args = never> {
  readonly command: string;
  readonly describe: string;
  readonly builder: (parser: Argv) => Argv;
  readonly run: (context: commands.CommandContext, args: Args) => Promise<number>;
}

type OnTask = Common & { readonly task_id: string; readonly reason?: string };

const onTask = (parser: Argv): Argv =>
  parser.positional('task_id', { type: 'string', demandOption: true, describe: 'a task id, such as bd-a1b2' });
const withReason = (parser: Argv): Argv =>
  onTask(parser).option('reason', { type: 'string', requiresArg: true, describe: 'why' });

const command = <Args>(given: Command<Args>): Command => given as unknown as Command;

type CreateArgs = Common & commands.CreateArgs & { readonly run?: boolean; readonly async: boolean };

const create = command<CreateArgs>({
  command: 'create <description>',
  describe: 'create a task; prints its id',
  builder: (parser) =>
    parser
      .positional('description', { type: 'string', demandOption: true, describe: 'what shall be done' })
      .options({
        title: { type: 'string', requiresArg: true, describe: 'one line; else the first line of the description' },
        deps: { type: 'string', array: true, requiresArg: true, describe: 'ids of tasks that must be complete first' },
        priority: { type: 'number', requiresArg: true, describe: '0 (first) to 4' },
        label: { type: 'string', array: true, requiresArg: true, describe: 'a label' },
        role: { type: 'string', choices: roles, requiresArg: true, describe: 'the role that shall work on it' },
        run: { type: 'boolean', implies: 'role', describe: 'run it at once, by that role' },
      })
      .example('agent create "Fix the sum" --deps bd-a1b2', 'a task that waits for another')
      .example('agent create "Fix the sum" --role engineer --run', 'create it and watch it run'),
  run: (context, args) =>
    args.run ? commands.createAndRun(context, args, args.async) : commands.create(context, args),
});

const show = command<OnTask>({
  command: 'show <task_id>',
  describe: 'show a task',
  builder: (parser) => onTask(parser).example('agent show bd-a1b2', 'its state, its error, its results'),
  run: async ({ connection, io, json }, { task_id }) => look.show(await connection.files(), io, json, task_id),
});

const list = command<Common & { readonly status?: string }>({
  command: 'list',
  describe: 'list tasks',
  builder: (parser) =>
    parser
      .option('status', { type: 'string', requiresArg: true, describe: 'queued (ready to run), started, complete, …' })
      .example('agent list --status queued', 'what can be run now'),
  run: async ({ connection, io, json }, { status }) => look.list(await connection.files(), io, json, status),
});

const close = command<OnTask>({
  command: 'close <task_id>',
  describe: 'mark a task complete',
  builder: (parser) => withReason(parser).example('agent close bd-a1b2', 'done by hand'),
  run: (context, { task_id, reason }) => commands.close(context, task_id, reason),
});

const asking = (method: 'cancel' | 'reopen' | 'retry', describe: string, example: string): Command =>
  command<OnTask>({
    command: `${method} <task_id>`,
    describe,
    builder: (parser) => withReason(parser).example(`agent ${method} bd-a1b2`, example),
    run: (context, { task_id, reason }) => commands.ask(context, method, task_id, reason),
  });

const logs = command<OnTask & { readonly follow: boolean }>({
  command: 'logs <task_id>',
  describe: 'show what happened to a task',
  builder: (parser) =>
    onTask(parser)
      .option('follow', { alias: 'f', type: 'boolean', default: false, describe: 'go on until it ends' })
      .example('agent logs -f bd-a1b2', 'watch a task that runs'),
  run: (context, { task_id, follow }) => commands.logs(context, task_id, follow),
});

interface RunArgs extends Common {
  readonly task_id: string;
  readonly async: boolean;
  readonly model: string | undefined;
  readonly timeout: number | undefined;
  readonly 'max-turns': number | undefined;
  readonly 'max-tokens-total': number | undefined;
  readonly verify: string[] | undefined;
  readonly network: boolean | undefined;
}

const given = (options: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

const runFlags = (parser: Argv): Argv =>
  parser.options({
    model: { type: 'string', requiresArg: true, describe: "the model to call; 'scripted' plays the built-in fake" },
    timeout: { type: 'number', requiresArg: true, describe: 'wall limit of the attempt, in seconds' },
    'max-turns': { type: 'number', requiresArg: true, describe: 'limit of model calls' },
    'max-tokens-total': { type: 'number', requiresArg: true, describe: 'limit of tokens, in and out' },
    verify: { type: 'string', array: true, requiresArg: true, describe: 'a command that must pass before completion' },
    network: { type: 'boolean', describe: 'commands may reach the network, where sandbox.allow_task_network is set' },
  });

const runs = roles.map((role) =>
  command<RunArgs>({
    command: `${role} <task_id>`,
    describe: `run the ${role} on a task`,
    builder: (parser) =>
      runFlags(onTask(parser)).example(`agent ${role} bd-a1b2`, 'run it and watch; with --async return at once'),
    run: (context, args) => {
      const options = given({
        model: args.model,
        timeout_seconds: args.timeout,
        max_turns: args['max-turns'],
        max_tokens_total: args['max-tokens-total'],
        verify: args.verify,
        network: args.network,
      });
      return commands.run(context, { role, task: args.task_id, options, json: args.json }, args.async);
    },
  }),
);

type Dependency = OnTask & { readonly action: 'add' | 'remove' | 'tree'; readonly depends_on: string | undefined };

const dependencies = command<Dependency>({
  command: 'dep <action> <task_id> [depends_on]',
  describe: 'add, remove or show (tree) dependencies: the first task waits for the second',
  builder: (parser) =>
    onTask(parser)
      .positional('action', { choices: ['add', 'remove', 'tree'] as const, demandOption: true })
      .positional('depends_on', { type: 'string', describe: 'the task that must be complete first' })
      .example('agent dep add bd-b2 bd-a1', 'bd-b2 waits for bd-a1')
      .example('agent dep tree bd-b2', 'what it depends on, down to the first ones'),
  run: (context, { action, task_id, depends_on }) => {
    if (action === 'tree') return dependencyTree(context, task_id);
    if (depends_on === undefined) throw new UsageError(`dep ${action} needs two task ids`);
    return changeDependency(context, action === 'add' ? 'add_dependency' : 'remove_dependency', task_id, depends_on);
  },
});

const responding = command<Common & RespondArgs>({
  command: 'respond <task_id> [answer]',
  describe: 'answer what an agent asks, or let it make a call',
  builder: (parser) =>
    onTask(parser)
      .positional('answer', { type: 'string', describe: 'the answer in words' })
      .options({
        allow: { type: 'boolean', conflicts: 'deny', describe: 'the calls may be made' },
        attempt: { type: 'number', requiresArg: true, describe: 'answer this attempt only; else the live one' },
        deny: { type: 'boolean', describe: 'the calls may not be made; words say why' },
      })
      .example('agent respond bd-a1 "the second one"', 'answer a question')
      .example('agent respond bd-a1 --deny "use the script"', 'refuse a call, with the reason'),
  run: (context, args) => respond(context, args),
});

const attemptOption = {
  attempt: { type: 'number', requiresArg: true, describe: 'of this attempt; else the latest' },
} as const;

const work: readonly Command[] = [
  command<Common & WorkArgs>({
    command: 'diff <task_id>',
    describe: 'show what an attempt changed, as a patch',
    builder: (parser) =>
      onTask(parser).options(attemptOption).example('agent diff bd-a1b2', 'also while the attempt is at work'),
    run: async (context, args) => (await import('./work-commands.ts')).showDiff(context, args),
  }),
  command<Common & WorkArgs & { readonly squash: boolean }>({
    command: 'merge <task_id>',
    describe: "bring what an attempt changed into the project's branch",
    builder: (parser) =>
      onTask(parser)
        .options({
          ...attemptOption,
          squash: { type: 'boolean', default: false, describe: 'as one commit, also when the branch has moved on' },
        })
        .example('agent merge bd-a1b2', 'move the branch on to it')
        .example('agent merge bd-a1b2 --squash', 'as one commit'),
    run: async (context, args) => (await import('./work-commands.ts')).mergeWork(context, args),
  }),
];

const watching: readonly Command[] = [
  command<Common & { readonly task_ids: readonly string[]; readonly timeout: number | undefined }>({
    command: 'wait <task_ids..>',
    describe: 'wait until tasks are over; 0 when all are complete',
    builder: (parser) =>
      parser
        .positional('task_ids', { type: 'string', array: true, demandOption: true, describe: 'task ids' })
        .option('timeout', { type: 'number', requiresArg: true, describe: 'seconds; then it ends with 124' })
        .example('agent wait bd-a1 bd-b2 --timeout 600', 'in a script, after agent --async'),
    run: (context, { task_ids, timeout }) => wait(context, task_ids.map(String), timeout),
  }),
  command<OnTask & { readonly at: number | undefined }>({
    command: 'replay <task_id>',
    describe: 'run the charts over what was recorded of a task, and show where they come to',
    builder: (parser) =>
      onTask(parser)
        .option('at', { type: 'number', requiresArg: true, describe: 'only up to this number of the journal' })
        .example('agent replay bd-a1b2 --at 42', 'the task as it was then'),
    run: (context, { task_id, at }) => replayTask(context, task_id, at),
  }),
  command<OnTask>({
    command: 'explain <task_id>',
    describe: 'say why a task is where it is, and what may happen next',
    builder: (parser) => onTask(parser).example('agent explain bd-a1', 'every guard with its value'),
    run: (context, { task_id }) => explainTask(context, task_id),
  }),
];

const serverActions = { start: startServerCommand, stop: stopServerCommand, status: statusOfServer } as const;

/** What reads the whole configuration is loaded only when it is asked for. */
const housekeeping: readonly Command[] = [
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
    run: async (context, { tracker, config }) => (await import('./init-command.ts')).init(context, tracker, config),
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
      if (model) return (await import('./model-probe-command.ts')).probeModelCommand(context, config);
      const { doctor, probeSandbox } = await import('./doctor-command.ts');
      return sandbox ? probeSandbox(context, config) : doctor(context, config);
    },
  }),
  command<Common>({
    command: 'roles',
    describe: 'list the roles: what each may do, where that comes from, what the project narrows',
    builder: (parser) => parser.example('agent roles --json', 'for programs'),
    run: async (context, { config }) => {
      const { listRoles } = await import('./roles/roles-command.ts');
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

const links: readonly Command[] = [
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

const completing: Command = command<Common & { readonly shell: Shell }>({
  command: 'completion <shell>',
  describe: 'print what a shell needs to complete these commands',
  builder: (parser) =>
    parser
      .positional('shell', { choices: shells, demandOption: true })
      .example('eval "$(agent completion bash)"', 'for this session'),
  run: async ({ io }, { shell }) => completion(io, shell, commandTable),
});

/** The commands of Spec 4 and CONTRACT 7, in the order in which help shows them. */
export const commandTable: readonly Command[] = [
  create,
  ...runs,
  show,
  list,
  close,
  asking('cancel', 'cancel a task and stop what it runs', 'stop it; the task can be retried'),
  asking('retry', 'run a failed or cancelled task again', 'another attempt by the same role'),
  asking('reopen', 'put a complete task back into the queue', 'it was not done after all'),
  responding,
  ...work,
  logs,
  ...watching,
  dependencies,
  ...housekeeping,
  ...links,
  completing,
];
