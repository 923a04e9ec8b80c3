import { roles } from '../../machines/task.ts';
import { inPager } from '../output/in-pager.ts';
import { usageError } from '../words/messages.ts';
import { UsageError } from '../words/usage-error.ts';
import {
  type CliCommand,
  defineCommand,
  fileFlag,
  pages,
  readsConfig,
  reasonFlag,
  startsServer,
  taskWord,
  taskWords,
} from './command.ts';
import { asyncFlag, sortKeys } from './common-flags.ts';
import { refuseRunFlags, runFlags, runOptionsOf } from './runs.ts';

export const createCommand = defineCommand({
  name: 'create',
  group: 'tasks',
  describe: 'Create a task and print its id',
  words: [
    {
      name: 'description',
      optional: true,
      describe: 'What to do; - reads standard input; without it, your editor opens',
    },
  ],
  instead:
    'put the description in quotes, and give each dependency its own flag: --deps <id> --deps <id>',
  notesTracker: 'once',
  common: startsServer,
  flags: {
    file: fileFlag,
    title: {
      type: 'text',
      value: 'text',
      describe: 'Title; default: the first line of the description',
    },
    deps: {
      type: 'text',
      value: 'ids',
      many: true,
      completes: 'task',
      describe: 'Task that must be complete first; separate several by commas',
    },
    priority: { type: 'number', value: 'n', describe: 'Priority, 0 (first) to 4 (last)' },
    label: { type: 'text', value: 'text', many: true, describe: 'Label' },
    role: { type: 'text', value: 'role', choices: roles, describe: 'Role that works on the task' },
    attach: {
      type: 'text',
      value: 'file',
      many: true,
      completes: 'file',
      describe: 'Image for the agent: PNG, JPEG or WebP, at most 5 MiB; at most 8, 10 MiB together',
    },
    run: { type: 'switch', needs: 'role', describe: 'Run the task at once with that role' },
    ...asyncFlag,
    ...runFlags,
  },
  examples: [
    ['agent create "Fix the sum" --deps bd-a1b2', 'create a task that waits for another'],
    ['agent create "Fix the header" --attach shot.png', 'show the agent a screenshot'],
    ['agent create -F task.md', 'the first line of the file is the title'],
    ['agent create "Fix the sum" --role engineer --run', 'create a task and watch it run'],
  ],
  run: async (context, args) => {
    const commands = await import('../tasks/commands.ts');
    const { textFrom, titleInstead } = await import('../tasks/read-input.ts');
    const { file, description: given } = args;
    if (args.run !== true) refuseRunFlags(args);
    const description = textFrom({ given, file }, context.env);
    if (description === null)
      throw usageError('word_missing', {
        command: 'create',
        word: '<description>',
        usage: 'agent create "<description>", or - to read it from standard input',
      });
    const title = args.title ?? titleInstead(description, file) ?? undefined;
    const images =
      args.attach === undefined
        ? []
        : (await import('../tasks/read-input.ts')).readImages(args.attach, context.cwd);
    const created = { ...args, description, title, images };
    if (args.run === true && args.role !== undefined) {
      const request = { role: args.role, options: runOptionsOf(args), json: args.json };
      return commands.createAndRun(context, created, request, args.async);
    }
    return commands.createOnly(context, created);
  },
});

export const showCommand = defineCommand({
  name: 'show',
  aliases: ['status'],
  group: 'tasks',
  describe: 'Show a task',
  findsTask: true,
  words: [taskWord],
  flags: {},
  common: pages,
  examples: [['agent show bd-a1b2', 'state, error and results']],
  run: async ({ connection, io, json, env }, { task_id, pager }) => {
    const { showTask } = await import('../tasks/look-commands.ts');
    return inPager(io, { env, pager, json }, async (paged) =>
      showTask(await connection.files(), paged, json, task_id),
    );
  },
});

const allProjectsFlag = {
  'all-projects': {
    type: 'switch',
    default: false,
    describe: 'Of every project of yours whose server was started before',
  },
} as const;

export const listCommand = defineCommand({
  name: 'list',
  aliases: ['ls'],
  group: 'tasks',
  describe: 'List tasks, the newest last',
  words: [],
  flags: {
    status: {
      type: 'text',
      value: 'status',
      describe:
        'Filter by status: queued (ready to run), started, complete, failed, cancelled or active (started or waiting)',
    },
    role: { type: 'text', value: 'role', choices: roles, describe: 'Filter by role' },
    label: { type: 'text', value: 'text', describe: 'Filter by label' },
    limit: {
      type: 'number',
      value: 'n',
      describe: 'How many tasks; default: 50 on a terminal, else all',
    },
    sort: {
      type: 'text',
      value: 'key',
      choices: sortKeys,
      describe: 'Order; what is newest, dearest or most urgent comes last',
    },
    all: { type: 'switch', describe: 'Every task, also on a terminal' },
    ...allProjectsFlag,
  },
  common: readsConfig,
  examples: [
    ['agent list --status queued', 'tasks that can run now'],
    ['agent list --sort cost --limit 10', 'the ten dearest tasks'],
  ],
  run: async (context, args) => {
    const { io, json } = context;
    if (args['all-projects'])
      return (await import('../tasks/all-projects.ts')).printAllProjects(context, args);
    const { printTasks } = await import('../tasks/look-commands.ts');
    return printTasks(await context.connection.files(), io, { ...args, json });
  },
});

export const psCommand = defineCommand({
  name: 'ps',
  group: 'tasks',
  describe: 'List the tasks that are started or waiting',
  words: [],
  flags: allProjectsFlag,
  common: readsConfig,
  examples: [
    ['agent ps', 'what runs now'],
    ['agent ps --all-projects', 'the same in every project of yours'],
  ],
  run: async (context, args) => {
    const { io, json } = context;
    const active = { json, status: 'active', all: true };
    if (args['all-projects'])
      return (await import('../tasks/all-projects.ts')).printAllProjects(context, active);
    const { printTasks } = await import('../tasks/look-commands.ts');
    return printTasks(await context.connection.files(), io, active);
  },
});

export const editCommand = defineCommand({
  name: 'edit',
  group: 'tasks',
  describe: 'Change title, description, priority, role or labels of a task',
  words: [taskWord],
  flags: {
    title: { type: 'text', value: 'text', describe: 'Title' },
    description: { type: 'text', value: 'text', describe: 'Description; - reads standard input' },
    file: fileFlag,
    priority: { type: 'number', value: 'n', describe: 'Priority, 0 (first) to 4 (last)' },
    label: {
      type: 'text',
      value: 'text',
      many: true,
      describe: "Label; they replace all labels, and --label '' removes them",
    },
    role: { type: 'text', value: 'role', choices: roles, describe: 'Role that works on the task' },
  },
  common: readsConfig,
  examples: [
    ['agent edit bd-a1b2', 'open title and description in $EDITOR'],
    ['agent edit bd-a1b2 --priority 0', 'make it the first'],
  ],
  run: async (context, args) => (await import('../tasks/edit-commands.ts')).editTask(context, args),
});

export const deleteCommand = defineCommand({
  name: 'delete',
  aliases: ['rm'],
  group: 'tasks',
  describe: 'Delete tasks that no other task depends on',
  words: [taskWords],
  flags: {},
  common: readsConfig,
  examples: [
    ['agent delete bd-a1b2', 'its branches stay; agent prune removes merged ones'],
    ['agent delete bd-a1 bd-b2', 'also where one of them depends on the other'],
  ],
  run: async (context, { task_ids }) =>
    (await import('../tasks/edit-commands.ts')).deleteTasks(context, task_ids),
});

export const usageCommand = defineCommand({
  name: 'usage',
  group: 'tasks',
  describe: 'Show what agents used, per day and role',
  words: [],
  flags: {
    days: { type: 'number', value: 'n', describe: 'How many days, with today; default: 30' },
  },
  common: readsConfig,
  examples: [['agent usage --days 7', 'attempts, time, tokens and cost of a week']],
  run: async (context, { days }) =>
    (await import('../tasks/usage-command.ts')).showUsage(context, days),
});

const declareChange = (
  method: 'close' | 'reopen',
  group: 'tasks' | 'runs',
  describe: string,
  examples: CliCommand['examples'],
): CliCommand =>
  defineCommand({
    name: method,
    group,
    describe,
    words: [taskWords],
    flags: reasonFlag,
    common: readsConfig,
    examples,
    run: async (context, args) =>
      (await import('../tasks/change-commands.ts')).changeTasks(context, method, args),
  });

export const closeCommand = declareChange('close', 'tasks', 'Mark tasks complete', [
  ['agent close bd-a1b2', 'the work was done by hand'],
]);
export const reopenCommand = declareChange(
  'reopen',
  'tasks',
  'Put complete tasks back in the queue',
  [['agent reopen bd-a1b2', 'the work was not done after all']],
);
export const cancelCommand = defineCommand({
  name: 'cancel',
  group: 'runs',
  describe: 'Cancel tasks and stop their agents; takes complete work out of the merge queue',
  words: [{ ...taskWords, optional: true }],
  flags: {
    ...reasonFlag,
    all: { type: 'switch', describe: 'Everything that runs or waits to run, workflows too' },
  },
  common: startsServer,
  examples: [
    ['agent cancel bd-a1 bd-b2', 'stop them; retry starts them again'],
    ['agent cancel --all', 'stop everything'],
  ],
  run: async (context, { all, ...args }) => {
    const { cancelEverything, changeTasks } = await import('../tasks/change-commands.ts');
    if ((all === true) === args.task_ids.length > 0)
      throw new UsageError('name the tasks to cancel, or give --all');
    return all === true ? cancelEverything(context, args) : changeTasks(context, 'cancel', args);
  },
});

export const importCommand = defineCommand({
  name: 'import',
  group: 'tasks',
  describe: 'Make tasks of issues or of a plan; what was imported before is not made again',
  words: [
    { name: 'action', describe: 'Where they are', choices: ['github', 'plan'] },
    {
      name: 'file',
      optional: true,
      completes: 'file',
      describe: 'Of a plan: a Markdown checklist, CSV or JSON; - is standard input',
    },
  ],
  flags: {
    label: {
      type: 'text',
      value: 'name',
      many: true,
      actions: ['github'],
      describe: 'Only issues with this label; several: with all of them',
    },
    milestone: {
      type: 'text',
      value: 'title',
      actions: ['github'],
      describe: 'Only issues of this milestone',
    },
    yes: { type: 'switch', default: false, describe: 'Do not ask' },
  },
  common: startsServer,
  notesTracker: 'once',
  examples: [
    ['agent import github --label agent', 'shows what it would make, and asks'],
    ['agent import plan todo.md', 'an item waits for those that are nested in it'],
    ['agent import plan tasks.csv --yes', 'title, description, priority, labels, role, depends_on'],
  ],
  run: async (context, { action, file, label, milestone, yes }) => {
    const { importGitHub, importPlan } = await import('../work/import-command.ts');
    if (action === 'github') {
      if (file !== undefined)
        throw new UsageError('import github takes no file: the issues are those of the forge');
      return importGitHub(context, { label, milestone, yes });
    }
    if (file === undefined) throw new UsageError('import plan needs a file; - is standard input');
    return importPlan(context, { file, yes });
  },
});

export const dependencyCommand = defineCommand({
  name: 'dep',
  group: 'tasks',
  describe: 'Add, remove or show dependencies; the first task waits for the others',
  words: [
    { name: 'action', describe: 'What to do', choices: ['add', 'remove', 'tree'] },
    { ...taskWord, optional: true },
    {
      name: 'depends_on',
      describe: 'Tasks that must be complete first',
      optional: true,
      many: true,
      completes: 'task',
    },
  ],
  flags: {},
  common: readsConfig,
  examples: [
    ['agent dep add bd-b2 bd-a1', 'bd-b2 waits for bd-a1'],
    ['agent dep add bd-c3 bd-a1 bd-b2', 'bd-c3 waits for both'],
    ['agent dep tree bd-b2', 'the whole tree of dependencies'],
    ['agent dep tree', 'the trees of all tasks that are not complete'],
  ],
  run: async (context, { action, task_id, depends_on }) => {
    const { changeDependencies, dependencyTree } = await import('../tasks/edit-commands.ts');
    if (action === 'tree' && depends_on.length > 0)
      throw new UsageError(
        `dep tree does not take ${depends_on.map((id) => JSON.stringify(id)).join(' ')}: one task at a time`,
      );
    if (action === 'tree') return dependencyTree(context, task_id);
    if (task_id === undefined || depends_on.length === 0)
      throw new UsageError(`dep ${action} needs two task ids`);
    return changeDependencies(
      context,
      action === 'add' ? 'add_dependency' : 'remove_dependency',
      task_id,
      depends_on,
    );
  },
});
