import yargs, { type Argv } from 'yargs';
import { StoreError } from '../actors/store/port.ts';
import { isServiceError, ServiceError } from '../machines/errors.ts';
import { messageOf } from '../machines/message-of.ts';
import { roles } from '../machines/task.ts';
import { CallError } from './client/client.ts';
import { connect } from './client/connect.ts';
import { textIn } from './client/json.ts';
import { commandTable } from './command-table.ts';
import { ConfigError } from './config/config.ts';
import { findProject, UsageError } from './config/project.ts';
import { trackerWarning } from './config/tracker-warning.ts';
import type { Invocation } from './invocation.ts';
import { closest } from './output/closest.ts';
import { exitCodeOf, exitCodes } from './output/exit-codes.ts';
import { hintFor } from './output/hints.ts';
import type { Io } from './output/io.ts';
import { PrivateFileError, StateFolderError } from './server/private-files.ts';
import type { Command, Common } from './table/command.ts';
import { version } from './version.ts';

const configExit = 78;
const noServer: ReadonlySet<string> = new Set([
  'server_needed',
  'server_not_started',
  'server_not_stopped',
  'server_lost',
  'server_silent',
  'state_unavailable',
]);

/** `_`: the command, then the words that yargs assigned to no positional. */
interface ParsedWords {
  readonly _: readonly (string | number)[];
}

const refuseExtraWords = ({ command, instead }: Command, [, ...extra]: ParsedWords['_']): void => {
  if (extra.length === 0) return;
  const [name] = command.split(' ');
  const otherwise = command.includes('<task_id>')
    ? 'one task at a time'
    : `see: agent ${name} --help`;
  const words = extra.map((word) => JSON.stringify(String(word))).join(' ');
  throw new UsageError(`${name} does not take ${words}: ${instead ?? otherwise}`);
};

const refuseNoNumbers = (args: object): void => {
  const [flag] = Object.entries(args).find(([, value]) => Number.isNaN(value)) ?? [];
  if (flag !== undefined) throw new UsageError(`--${flag} needs a number`);
};

/**
 * Words after `--` are text. Yargs assigns such words to no positional, so they are marked first.
 */
const textMark = '\0';
const markText = (words: readonly string[]): string[] => {
  const end = words.indexOf('--');
  if (end < 0) return [...words];
  return [...words.slice(0, end), ...words.slice(end + 1).map((word) => `${textMark}${word}`)];
};
const unmarkText = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(unmarkText);
  return typeof value === 'string' && value.startsWith(textMark)
    ? value.slice(textMark.length)
    : value;
};

const handler =
  (command: Command, { cwd, env }: Invocation, io: Io, ended: (code: number) => void) =>
  async (parsed: Common & ParsedWords): Promise<void> => {
    const args = Object.fromEntries(
      Object.entries(parsed).map(([key, value]) => [key, unmarkText(value)]),
    ) as unknown as typeof parsed;
    refuseExtraWords(command, args._);
    refuseNoNumbers(args);
    const project = findProject(args.project, cwd, env);
    const warning = trackerWarning(env, project.root);
    if (warning !== null) io.err(warning);
    const connection = connect({ project, config: args.config, start: args.start, io, env });
    ended(await command.run({ project, connection, io, env, json: args.json }, args as never));
  };

/** Prints the help or the version, or refuses the unknown word. */
const withoutCommand =
  (parser: () => Argv, io: Io) =>
  async ({ _: words }: ParsedWords): Promise<void> => {
    const [first, second] = words.map((word) => String(unmarkText(word)));
    if (first === undefined) return io.out(await parser().getHelp());
    if (first === 'version' && second === undefined) return io.out(version);
    const meant = closest(
      first,
      commandTable.map(({ command }) => command.split(' ')[0] ?? command),
    );
    const isRole = meant === null || roles.some((role) => role === meant);
    const hint = meant === null ? 'see: agent --help' : `did you mean: agent ${meant}?`;
    if (second !== undefined && isRole) {
      io.err(`agent: ${hint}`);
      throw new ServiceError('role_unknown', { role: first });
    }
    throw new UsageError(`unknown command: ${first}; ${hint}`);
  };

/** `agent help create` is `agent create --help`. */
const helpAsFlag = ([first, ...rest]: readonly string[]): readonly string[] =>
  first === 'help' ? [...rest, '--help'] : first === undefined ? [] : [first, ...rest];

const baseParser = (): Argv => {
  const parser = yargs();
  parser
    .scriptName('agent')
    .locale('en')
    .usage('$0 <command> [options]\n\nRuns coding agents on the tasks of this project.')
    .parserConfiguration({ 'greedy-arrays': false, 'parse-positional-numbers': false })
    .options({
      json: { type: 'boolean', default: false, describe: 'Print JSON: one value, or one per line' },
      project: { type: 'string', requiresArg: true, describe: 'Project folder' },
      config: {
        type: 'string',
        requiresArg: true,
        describe: 'Configuration file of a server that it starts',
      },
      async: {
        type: 'boolean',
        default: false,
        describe: 'With a role: return at once and work in the background',
      },
      start: {
        type: 'boolean',
        default: true,
        describe: 'Start a server if none runs; --no-start refuses',
      },
    });
  return parser;
};

const parserFor = (invocation: Invocation, io: Io, ended: (code: number) => void): Argv => {
  const parser: Argv = commandTable
    .reduce(
      (all, command) =>
        all.command({
          command: command.command,
          describe: command.describe,
          builder: command.builder,
          handler: handler(command, invocation, io, ended) as never,
        }),
      baseParser(),
    )
    .command({ command: '$0', describe: false, handler: withoutCommand(() => parser, io) as never })
    .strictOptions()
    .version(version)
    .help()
    .alias('help', 'h')
    .describe({ help: 'Show help', version: 'Show the version' })
    .wrap(Math.min(110, process.stdout.columns ?? 110))
    .exitProcess(false)
    .fail((message, error) => {
      const hint = message.startsWith('Not enough non-option')
        ? '; text that begins with - goes after --'
        : '';
      throw error ?? new UsageError(`${message}${hint}`);
    });
  return parser;
};

const errorName = (error: unknown): string => {
  if (isServiceError(error) || error instanceof CallError) return error.code;
  if (error instanceof ConfigError) return 'config_invalid';
  if (error instanceof PrivateFileError) return 'unauthorized';
  if (error instanceof StateFolderError || error instanceof StoreError) return 'state_unavailable';
  return error instanceof UsageError || (error instanceof Error && error.name === 'YError')
    ? 'usage'
    : 'internal';
};

const exitCodeOfName = (name: string): number => {
  if (name === 'usage') return exitCodes.usage;
  if (name === 'config_invalid') return configExit;
  return noServer.has(name) ? exitCodes.unavailable : exitCodeOf(name);
};

const factsOf = (error: unknown): Readonly<Record<string, unknown>> =>
  isServiceError(error) || error instanceof CallError ? { ...error.facts } : {};

const reportError = (error: unknown, { words, env }: Invocation, io: Io): number => {
  const name = errorName(error);
  const hint = hintFor(name, factsOf(error));
  const message = `${messageOf(error)}${hint === null ? '' : `; ${hint}`}`;
  io.live('');
  if (words.includes('--json')) io.json({ error: { ...factsOf(error), code: name, message } });
  io.err(`agent: ${message}`);
  const variable = textIn(factsOf(error), 'variable');
  if (name === 'credential_missing' && variable !== null && env[variable])
    io.err(
      `note: ${variable} is set here, but was not where the server was started; end it with: agent server stop`,
    );
  return exitCodeOfName(name);
};

/** @returns the exit code; never rejects */
export const runCommandLine = async (invocation: Invocation, io: Io): Promise<number> => {
  let code: number = exitCodes.done;
  const ended = (of: number): void => {
    code = of;
  };
  try {
    const words = markText(helpAsFlag(invocation.words));
    // With a callback, yargs passes its help on instead of printing it.
    await parserFor(invocation, io, ended).parseAsync(words, {}, (_error, _args, output) => {
      if (output !== '') io.out(output);
    });
    return code;
  } catch (error) {
    return reportError(error, invocation, io);
  }
};
