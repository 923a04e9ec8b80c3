import { roles } from '../../machines/task.ts';
import { UsageError } from '../words/usage-error.ts';
import {
  type CliCommand,
  defineCommand,
  type Flags,
  reasonFlag,
  startsServer,
  taskWord,
  taskWords,
} from './command.ts';
import { asyncFlag } from './common-flags.ts';

const wireNames = {
  model: 'model',
  timeout: 'timeout_seconds',
  'max-turns': 'max_turns',
  'max-tokens-total': 'max_tokens_total',
  'max-cost': 'max_cost_usd',
  verify: 'verify',
  'when-ready': 'when',
  network: 'network',
  publish: 'publish',
} as const;
type RunFlag = keyof typeof wireNames;
type RunFlags = { readonly [Flag in RunFlag]?: unknown };

export const runFlags = {
  model: { type: 'text', value: 'name', describe: "Model; 'scripted' is the built-in fake" },
  timeout: { type: 'number', value: 'seconds', describe: 'Time limit of the attempt' },
  'max-turns': { type: 'number', value: 'n', describe: 'Maximum number of model calls' },
  'max-tokens-total': {
    type: 'number',
    value: 'n',
    describe: 'Maximum number of input and output tokens',
  },
  'max-cost': {
    type: 'number',
    value: 'usd',
    describe: 'Maximum cost of the attempt in USD; it fails there',
  },
  verify: {
    type: 'text',
    value: 'command',
    many: true,
    describe: 'Command that must pass before the task completes',
  },
  'when-ready': {
    type: 'switch',
    describe: 'Start when the dependencies are complete, instead of refusing',
  },
  network: {
    type: 'switch',
    describe: 'Let commands reach the network; needs sandbox.allow_task_network',
  },
  publish: { type: 'switch', describe: 'Open a pull request when it is complete' },
} as const satisfies Flags & Record<RunFlag, unknown>;

const flagsGiven = (args: RunFlags): readonly RunFlag[] =>
  (Object.keys(wireNames) as readonly RunFlag[]).filter((flag) => args[flag] !== undefined);

const wireValue = (flag: RunFlag, value: unknown): unknown =>
  flag === 'when-ready' ? (value === true ? 'ready' : 'now') : value;

export const runOptionsOf = (args: RunFlags): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    flagsGiven(args).map((flag) => [wireNames[flag], wireValue(flag, args[flag])]),
  );

/** @throws UsageError when a flag of a run was given without `--run` */
export const refuseRunFlags = (args: RunFlags): void => {
  const flags = flagsGiven(args).map((flag) => `--${flag}`);
  if (flags.length > 0)
    throw new UsageError(
      `${flags.join(', ')}: only a run takes this; add --run --role <role>, or leave it out`,
    );
};

export const roleCommands: readonly CliCommand[] = roles.map((role) =>
  defineCommand({
    name: role,
    group: 'runs',
    describe: `Run the ${role} on a task`,
    words: [taskWord],
    instead: `one task at a time; put the text of a new task in quotes: agent ${role} "<text>"`,
    notesTracker: 'once',
    notesLimits: true,
    common: startsServer,
    flags: { ...asyncFlag, ...runFlags },
    examples: [
      [`agent ${role} bd-a1b2`, 'run the task and watch'],
      [`agent ${role} bd-a1b2 --async`, 'run it in the background'],
    ],
    run: async (context, args) =>
      (await import('../tasks/commands.ts')).runTask(
        context,
        { role, task: args.task_id, options: runOptionsOf(args), json: args.json },
        args.async,
      ),
  }),
);

const { 'when-ready': _, ...flagsOfRetry } = runFlags;

export const retryCommand = defineCommand({
  name: 'retry',
  group: 'runs',
  describe: 'Run failed or cancelled tasks again',
  words: [taskWords],
  common: startsServer,
  flags: { ...reasonFlag, ...asyncFlag, ...flagsOfRetry },
  examples: [
    ['agent retry bd-a1b2', 'start another attempt by the same role, and watch it'],
    ['agent retry bd-a1b2 --verify "npm test"', 'the rest as in the last attempt'],
  ],
  run: async (context, args) =>
    (await import('../tasks/change-commands.ts')).retryTasks(context, {
      ...args,
      options: runOptionsOf(args),
    }),
});
