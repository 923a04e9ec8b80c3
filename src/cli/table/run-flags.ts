import type { Argv, Options } from 'yargs';
import { UsageError } from '../config/project.ts';

/** The flags of a run, and what `execute` calls them (CONTRACT 3). */
const wireNames = {
  model: 'model',
  timeout: 'timeout_seconds',
  'max-turns': 'max_turns',
  'max-tokens-total': 'max_tokens_total',
  verify: 'verify',
  network: 'network',
} as const;
type RunFlag = keyof typeof wireNames;
export type RunFlags = { readonly [Flag in RunFlag]?: unknown };

export const withRunFlags = (parser: Argv): Argv =>
  parser.options({
    model: { type: 'string', requiresArg: true, describe: "the model to call; 'scripted' plays the built-in fake" },
    timeout: { type: 'number', requiresArg: true, describe: 'wall limit of the attempt, in seconds' },
    'max-turns': { type: 'number', requiresArg: true, describe: 'limit of model calls' },
    'max-tokens-total': { type: 'number', requiresArg: true, describe: 'limit of tokens, in and out' },
    verify: { type: 'string', array: true, requiresArg: true, describe: 'a command that must pass before completion' },
    network: { type: 'boolean', describe: 'commands may reach the network, where sandbox.allow_task_network is set' },
  } satisfies Record<RunFlag, Options>);

const flagsGiven = (args: RunFlags): readonly RunFlag[] =>
  (Object.keys(wireNames) as readonly RunFlag[]).filter((flag) => args[flag] !== undefined);

/** The options of `execute` that were given. */
export const runOptionsOf = (args: RunFlags): Readonly<Record<string, unknown>> =>
  Object.fromEntries(flagsGiven(args).map((flag) => [wireNames[flag], args[flag]]));

/** @throws UsageError when something was said about a run that nobody asked for */
export const refuseRunFlags = (args: RunFlags): void => {
  const flags = flagsGiven(args).map((flag) => `--${flag}`);
  if (flags.length > 0)
    throw new UsageError(`only a run takes ${flags.join(', ')}: add --run --role <role>, or leave it out`);
};
