#!/usr/bin/env node
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { messageOf } from '../machines/message-of.ts';
import { ConfigError, loadConfig } from './config/config.ts';
import { findProject, UsageError } from './config/project.ts';
import { print } from './output/io.ts';
import type { RunningServer } from './server/run-server.ts';
import { version } from './version.ts';

const exit = { usage: 2, failed: 1, config: 78 } as const;

const parser = yargs(hideBin(process.argv))
  .scriptName('agent-server')
  .locale('en')
  .usage(
    '$0 --server [options]\n\nRuns agents on the tasks of one project. Serves this machine only.',
  )
  .options({
    server: { type: 'boolean', describe: 'Run as a server' },
    config: { type: 'string', requiresArg: true, describe: 'Configuration file (JSON)' },
    port: {
      type: 'number',
      requiresArg: true,
      describe: 'Port to listen on; 0 takes any free port',
    },
    host: {
      type: 'string',
      requiresArg: true,
      describe: 'Address to listen on: localhost, 127.0.0.1 or ::1',
    },
    'max-concurrent': {
      type: 'number',
      requiresArg: true,
      describe: 'Maximum number of agents at once',
    },
    inspect: {
      type: 'boolean',
      default: false,
      describe: "Show the live state machines to XState's inspector",
    },
    'drain-timeout': {
      type: 'number',
      default: 0,
      requiresArg: true,
      describe:
        'Seconds for running agents to finish after a signal; then they wait for the next start',
    },
    project: { type: 'string', requiresArg: true, describe: 'Project folder' },
    'allow-remote': { type: 'boolean', default: false, hidden: true },
    'behind-tls-proxy': { type: 'boolean', default: false, hidden: true },
    'tls-cert': { type: 'string', requiresArg: true, hidden: true },
    'tls-key': { type: 'string', requiresArg: true, hidden: true },
  })
  .example('$0 --server', 'serve the project of this folder on port 8080')
  .example(
    '$0 --server --port 9000 --max-concurrent 5',
    'use another port, run five agents at once',
  )
  .strict()
  .version(version)
  .help()
  .alias('help', 'h')
  .describe({ help: 'Show help', version: 'Show the version' })
  .exitProcess(false)
  .fail((message, error) => {
    throw error ?? new UsageError(message);
  });

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
  if (error instanceof ConfigError) return exit.config;
  return error instanceof UsageError || (error instanceof Error && error.name === 'YError')
    ? exit.usage
    : exit.failed;
};

/** A signal during the start takes effect after it. */
const obeySignals = (starting: Promise<RunningServer>): void => {
  let stopping = false;
  const onSignal = (): void => {
    if (stopping) process.exit(exit.failed);
    stopping = true;
    starting
      .then(({ stop }) => stop())
      .then(
        () => process.exit(0),
        (error: unknown) => {
          print('stderr', `agent-server: ${messageOf(error)}\n`);
          process.exit(exit.failed);
        },
      );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  process.on('SIGHUP', () => {
    starting.then(({ reload }) => reload()).catch(() => {});
  });
};

// A full disk under the log must not end running attempts.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

const main = async (): Promise<void> => {
  const args = await parser.parseAsync();
  if (args['help'] || args['version']) return;
  const [word] = args._;
  if (word !== undefined)
    throw new UsageError(`agent-server takes flags only, not ${JSON.stringify(String(word))}`);
  if (args.server !== true) {
    print('stdout', `${await parser.getHelp()}\n`);
    process.exitCode = exit.usage;
    return;
  }
  requireLocal(args);
  const load = () => loadConfig({ ...args, maxConcurrent: args['max-concurrent'] }, process.env);
  load();
  const project = findProject(args.project, process.cwd(), process.env);
  const { runServer } = await import('./server/run-server.ts');
  const drain = args['drain-timeout'];
  if (!Number.isFinite(drain) || drain < 0 || drain > 86_400)
    throw new UsageError('--drain-timeout: expected seconds, 0 to 86400');
  const drainMs = drain * 1_000;
  const starting = runServer({ project, load, env: process.env, inspect: args.inspect, drainMs });
  obeySignals(starting);
  await starting;
};

main().catch((error: unknown) => {
  print('stderr', `agent-server: ${messageOf(error)}\n`);
  process.exit(exitCodeOfError(error));
});
