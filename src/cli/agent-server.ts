#!/usr/bin/env node
import { hideBin } from 'yargs/helpers';
import { isServiceError } from '../machines/errors.ts';
import { messageOf } from '../machines/message-of.ts';
import { loadConfig } from './config/config.ts';
import { ConfigError } from './config/config-error.ts';
import { findMovedProject } from './config/places/moved-project.ts';
import { trackerNote } from './config/tracker-note.ts';
import type { Flags } from './declarations/command.ts';
import { everywhere } from './declarations/common-flags.ts';
import { exitCodeOf, exitCodes } from './output/exit-codes.ts';
import { print } from './output/io.ts';
import { durationText } from './output/times.ts';
import { leftText } from './server/left-text.ts';
import type { RunningServer } from './server/run-server.ts';
import type { ServerLoad } from './server/serve.ts';
import { version } from './version.ts';
import { checkWords, type Grammar } from './words/check-words.ts';
import { helpWidth, renderProgramHelp } from './words/help.ts';
import { parseWords } from './words/parse-words.ts';
import { UsageError } from './words/usage-error.ts';

const flags = {
  server: { type: 'switch', describe: 'Run as a server' },
  config: { type: 'text', value: 'file', describe: 'Configuration file (JSON)' },
  port: { type: 'number', value: 'n', describe: 'Port to listen on; 0 takes any free port' },
  host: {
    type: 'text',
    value: 'address',
    describe: 'Address to listen on: localhost, 127.0.0.1 or ::1',
  },
  'max-concurrent': { type: 'number', value: 'n', describe: 'Maximum number of agents at once' },
  store: {
    type: 'text',
    value: 'address',
    describe: 'postgres://user@host/database, or the name of a variable that holds one',
  },
  inspect: {
    type: 'switch',
    default: false,
    describe: "Show the live state machines to XState's inspector",
  },
  'drain-timeout': {
    type: 'number',
    value: 'seconds',
    default: 0,
    describe: 'How long running agents may go on after a signal; then they wait for the next start',
  },
  project: { type: 'text', value: 'folder', describe: 'Project folder' },
  'allow-remote': { type: 'switch', hidden: true, describe: 'Refused' },
  'behind-tls-proxy': { type: 'switch', hidden: true, describe: 'Refused' },
  'tls-cert': { type: 'text', value: 'file', hidden: true, describe: 'Refused' },
  'tls-key': { type: 'text', value: 'file', hidden: true, describe: 'Refused' },
} as const satisfies Flags;

const serverGrammar: Grammar = {
  program: 'agent-server',
  common: {},
  all: { ...flags, ...everywhere },
};

const program = {
  name: 'agent-server',
  usage: 'agent-server --server [flags]',
  describe: 'Runs agents on the tasks of one project. Serves this machine only.',
  words: [],
  flags,
  instead: 'it takes flags only',
  examples: [
    ['agent-server --server', 'serve the project of this folder on port 8080'],
    [
      'agent-server --server --port 9000 --max-concurrent 5',
      'use another port, run five agents at once',
    ],
  ],
} as const;

/** Without TLS the token would travel in the clear, and TLS is not offered. */
const requireLocal = (args: { readonly [flag: string]: unknown }): void => {
  const asked = ['allow-remote', 'behind-tls-proxy', 'tls-cert', 'tls-key'].find(
    (flag) => args[flag],
  );
  if (asked === undefined) return;
  throw new ConfigError(
    `--${asked}: agent-server serves this machine only, since it has no TLS and the token would travel unencrypted; from another machine use: ssh -L 8080:127.0.0.1:8080 <this machine>`,
  );
};

const exitCodeOfError = (error: unknown): number => {
  if (error instanceof ConfigError) return exitCodes.configuration;
  if (isServiceError(error)) return exitCodeOf(error.code);
  return error instanceof UsageError ? exitCodes.usage : exitCodes.failed;
};

const stoppingText = ({ running, waiting }: ServerLoad, drainMs: number): string => {
  const left =
    running + waiting === 0
      ? 'no task is running'
      : `${leftText(running, waiting)} when a server starts: agent server start`;
  const wait = running === 0 || drainMs === 0 ? '' : ` within ${durationText(drainMs)}`;
  return `agent-server: stopping${wait}; ${left} (Ctrl-C again exits at once)`;
};

/** A signal during the start takes effect after it. */
const obeySignals = (starting: Promise<RunningServer>, drainMs: number): void => {
  let stopping = false;
  const end = (): void => {
    if (stopping) process.exit(exitCodes.failed);
    stopping = true;
    starting
      .then(async ({ stop, load }) => {
        print('stderr', `${stoppingText(await load(), drainMs)}\n`);
        await stop();
      })
      .then(
        () => process.exit(0),
        (error: unknown) => {
          print('stderr', `agent-server: ${messageOf(error)}\n`);
          process.exit(exitCodes.failed);
        },
      );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('SIGHUP', () => {
    starting.then(({ reload }) => reload()).catch(() => {});
  });
};

// A full disk under the log must not end running attempts.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

const printServerHelp = (): void =>
  print('stdout', `${renderProgramHelp(program, helpWidth(process.stdout.columns))}\n`);

const main = async (): Promise<void> => {
  const given = hideBin(process.argv);
  const parsed = parseWords(given, serverGrammar.all);
  if (parsed.flags['help'] === true) return printServerHelp();
  if (parsed.flags['version'] === true) return print('stdout', `${version}\n`);
  const args = checkWords(given, parsed, program, serverGrammar);
  if (args.server !== true) {
    printServerHelp();
    process.exitCode = exitCodes.usage;
    return;
  }
  requireLocal(args);
  const project = findMovedProject(args.project, process.cwd(), process.env);
  const { 'max-concurrent': maxConcurrent } = args;
  const load = () => loadConfig({ ...args, project, maxConcurrent }, process.env);
  const { config } = load();
  const note = trackerNote(config, process.env, project.root);
  if (note !== null) print('stderr', `${note}\n`);
  const { runServer } = await import('./server/run-server.ts');
  const drain = args['drain-timeout'];
  if (!Number.isFinite(drain) || drain < 0 || drain > 86_400)
    throw new UsageError('--drain-timeout: expected seconds, 0 to 86400');
  const drainMs = drain * 1_000;
  const onLeaseLost = ({ message }: Error): void => {
    print('stderr', `agent-server: ${message}\n`);
    // Another server may have its tasks now. This kills its commands, and waits for nothing.
    process.exit(exitCodes.failed);
  };
  const { inspect } = args;
  const starting = runServer({ project, load, env: process.env, inspect, drainMs, onLeaseLost });
  obeySignals(starting, drainMs);
  await starting;
};

main().catch((error: unknown) => {
  print('stderr', `agent-server: ${messageOf(error)}\n`);
  process.exit(exitCodeOfError(error));
});
