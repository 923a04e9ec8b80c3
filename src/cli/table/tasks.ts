import { roles } from '../../machines/task.ts';
import { UsageError } from '../config/project.ts';
import { type RespondArgs, respond } from '../runs/respond-command.ts';
import * as commands from '../tasks/commands.ts';
import { changeDependency, dependencyTree } from '../tasks/dependency-commands.ts';
import * as look from '../tasks/look-commands.ts';
import { sortKeys } from '../tasks/sort-tasks.ts';
import {
  type Command,
  type Common,
  defineCommand,
  type OnTask,
  onTask,
  withReason,
} from './command.ts';

export const showCommand = defineCommand<OnTask>({
  command: 'show <task_id>',
  describe: 'Show a task',
  builder: (parser) => onTask(parser).example('agent show bd-a1b2', 'state, error and results'),
  run: async ({ connection, io, json }, { task_id }) =>
    look.showTask(await connection.files(), io, json, task_id),
});

export const listCommand = defineCommand<Common & look.ListArgs>({
  command: 'list',
  describe: 'List tasks, the newest last',
  builder: (parser) =>
    parser
      .options({
        status: {
          type: 'string',
          requiresArg: true,
          describe:
            'Filter by status: queued (ready to run), started, complete, failed or cancelled',
        },
        role: { type: 'string', choices: roles, requiresArg: true, describe: 'Filter by role' },
        label: { type: 'string', requiresArg: true, describe: 'Filter by label' },
        limit: {
          type: 'number',
          requiresArg: true,
          describe: 'How many tasks; default: 50 on a terminal, else all',
        },
        sort: {
          type: 'string',
          choices: sortKeys,
          requiresArg: true,
          describe: 'Order; what is newest, dearest or most urgent comes last',
        },
        all: { type: 'boolean', describe: 'Every task, also on a terminal' },
      })
      .example('agent list --status queued', 'tasks that can run now')
      .example('agent list --sort cost --limit 10', 'the ten dearest tasks'),
  run: async ({ connection, io, json }, args) =>
    look.listTasks(await connection.files(), io, { ...args, json }),
});

export const changeCommand = (
  method: 'close' | 'reopen',
  describe: string,
  example: string,
): Command =>
  defineCommand<OnTask>({
    command: `${method} <task_id>`,
    describe,
    builder: (parser) => withReason(parser).example(`agent ${method} bd-a1b2`, example),
    run: (context, { task_id, reason }) =>
      commands.changeWithoutServer(context, method, task_id, reason),
  });

export const serverChangeCommand = (
  method: 'cancel' | 'retry',
  describe: string,
  example: string,
): Command =>
  defineCommand<OnTask>({
    command: `${method} <task_id>`,
    describe,
    builder: (parser) => withReason(parser).example(`agent ${method} bd-a1b2`, example),
    run: (context, { task_id, reason }) =>
      commands.changeOnServer(context, method, task_id, reason),
  });

type LogsArgs = OnTask & { readonly follow: boolean; readonly full: boolean };

export const logsCommand = defineCommand<LogsArgs>({
  command: 'logs <task_id>',
  describe: 'Show the history of a task',
  builder: (parser) =>
    onTask(parser)
      .option('follow', {
        alias: 'f',
        type: 'boolean',
        default: false,
        describe: 'Keep printing until the task ends',
      })
      .option('full', {
        type: 'boolean',
        default: false,
        describe: 'With the output of every call, and whole texts',
      })
      .example('agent logs --full bd-a1b2', 'what every command printed')
      .example('agent logs -f bd-a1b2', 'watch a running task'),
  run: (context, { task_id, follow, full }) =>
    commands.showLogs(context, task_id, { follow, full }),
});

type Dependency = OnTask & {
  readonly action: 'add' | 'remove' | 'tree';
  readonly depends_on: string | undefined;
};

export const dependencyCommand = defineCommand<Dependency>({
  command: 'dep <action> <task_id> [depends_on]',
  describe: 'Add, remove or show dependencies; the first task waits for the second',
  instead: 'one dependency at a time: agent dep add <task_id> <depends_on>',
  builder: (parser) =>
    onTask(parser)
      .positional('action', { choices: ['add', 'remove', 'tree'] as const, demandOption: true })
      .positional('depends_on', { type: 'string', describe: 'Task that must be complete first' })
      .example('agent dep add bd-b2 bd-a1', 'bd-b2 waits for bd-a1')
      .example('agent dep tree bd-b2', 'the whole tree of dependencies'),
  run: (context, { action, task_id, depends_on }) => {
    if (action === 'tree' && depends_on !== undefined)
      throw new UsageError(
        `dep tree does not take ${JSON.stringify(depends_on)}: one task at a time`,
      );
    if (action === 'tree') return dependencyTree(context, task_id);
    if (depends_on === undefined) throw new UsageError(`dep ${action} needs two task ids`);
    return changeDependency(
      context,
      action === 'add' ? 'add_dependency' : 'remove_dependency',
      task_id,
      depends_on,
    );
  },
});

export const respondCommand = defineCommand<Common & RespondArgs>({
  command: 'respond <task_id> [answer]',
  describe: "Answer an agent's question, or approve its calls",
  instead: 'put the answer in quotes',
  builder: (parser) =>
    onTask(parser)
      .positional('answer', { type: 'string', describe: 'Answer in words' })
      .options({
        allow: { type: 'boolean', conflicts: 'deny', describe: 'Approve the calls' },
        attempt: {
          type: 'number',
          requiresArg: true,
          describe: 'Answer only this attempt; default: the live one',
        },
        deny: { type: 'boolean', describe: 'Refuse the calls; the answer says why' },
      })
      .example('agent respond bd-a1 "the second one"', 'answer a question')
      .example('agent respond bd-a1 --deny "use the script"', 'refuse a call and say why'),
  run: (context, args) => respond(context, args),
});
