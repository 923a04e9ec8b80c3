#!/usr/bin/env node
import yargs, { type Argv } from 'yargs';
import { hideBin } from 'yargs/helpers';
import { isServiceError, ServiceError } from '../machines/errors.ts';
import { roles } from '../machines/task.ts';
import { CallError } from './client.ts';
import { closest } from './closest.ts';
import { type Command, type Common, commandTable } from './command-table.ts';
import { ConfigError } from './config.ts';
import { connect, trackerWarning } from './connect.ts';
import { exitCodeOf, exitCodes } from './exit-codes.ts';
import { processIo } from './io.ts';
import { findProject, UsageError } from './project.ts';
import { PrivateFileError } from './server/private-files.ts';
import { version } from './version.ts';

const io = processIo();
const configExit = 78;
const noServer: ReadonlySet<string> = new Set([
  'server_needed',
  'server_not_started',
  'server_not_stopped',
  'server_lost',
]);

let code: number = exitCodes.done;

/** Runs a command with what every command needs, and keeps its exit code. */
const handler =
  ({ run }: Command) =>
  async (args: Common): Promise<void> => {
    const project = findProject(args.project, process.cwd(), process.env);
    const warning = trackerWarning(process.env);
    if (warning !== null) io.err(warning);
    const connection = connect({ project, config: args.config, start: args.start, io });
    code = await run({ project, connection, io, json: args.json }, args as never);
  };

const unknown = async ({ _: words }: { readonly _: readonly (string | number)[] }): Promise<void> => {
  const [first, second] = words.map(String);
  if (first === undefined) throw new UsageError('what shall I do? see: agent --help');
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

const base: Argv = yargs(hideBin(process.argv))
  .scriptName('agent')
  .usage('$0 <command> [options]\n\nRuns coding agents on the tasks of this project.')
  .parserConfiguration({ 'greedy-arrays': false, 'parse-positional-numbers': false })
  .options({
    json: { type: 'boolean', default: false, describe: 'one JSON value on stdout, or one per line' },
    project: { type: 'string', requiresArg: true, describe: 'project folder' },
    config: { type: 'string', requiresArg: true, describe: 'configuration of a server started by this command' },
    async: {
      type: 'boolean',
      default: false,
      describe: 'with a role: return at once; the work goes on in the background',
    },
    start: { type: 'boolean', default: true, describe: 'start a server when none runs (--no-start refuses)' },
  }) as unknown as Argv;

const parser = commandTable
  .reduce(
    (all, command) =>
      all.command({
        command: command.command,
        describe: command.describe,
        builder: command.builder,
        handler: handler(command) as never,
      }),
    base,
  )
  .command({ command: '$0', describe: false, handler: unknown as never })
  .strictOptions()
  .version(version)
  .help()
  .wrap(Math.min(110, process.stdout.columns ?? 110))
  .exitProcess(false)
  .fail((message, error) => {
    throw error ?? new UsageError(message);
  });

const nameOf = (error: unknown): string => {
  if (isServiceError(error) || error instanceof CallError) return error.code;
  if (error instanceof ConfigError) return 'config_invalid';
  if (error instanceof PrivateFileError) return 'unauthorized';
  return error instanceof UsageError || (error instanceof Error && error.name === 'YError') ? 'usage' : 'internal';
};

const exitOf = (name: string): number => {
  if (name === 'usage') return exitCodes.usage;
  if (name === 'config_invalid') return configExit;
  return noServer.has(name) ? exitCodes.unavailable : exitCodeOf(name);
};

const factsOf = (error: unknown): object =>
  isServiceError(error) || error instanceof CallError ? { ...error.facts } : {};

const report = (error: unknown): number => {
  const name = nameOf(error);
  const message = error instanceof Error ? error.message : String(error);
  io.live('');
  if (process.argv.includes('--json')) io.out(JSON.stringify({ error: { ...factsOf(error), code: name, message } }));
  io.err(`agent: ${message}`);
  return exitOf(name);
};

/** yargs throws what is wrong with the words at once, and rejects with what goes wrong in a command. */
const main = async (): Promise<void> => {
  await parser.parseAsync();
};

/** A pipe takes its time: what was written must be out before the process ends. */
const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    stream.write('', () => resolve());
  });

const leave = async (exitCode: number): Promise<void> => {
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit(exitCode);
};

// A reader that has seen enough, such as head, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(code);
  throw error;
});

main().then(
  () => leave(code),
  (error: unknown) => leave(report(error)),
);
