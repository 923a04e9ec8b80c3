import { StoreError } from '../../actors/store/port.ts';
import { isServiceError } from '../../machines/errors.ts';
import { textIn } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { CallError } from '../client/client.ts';
import { ConfigError } from '../config/config-error.ts';
import type { Invocation } from '../invocation.ts';
import { PrivateFileError, StateFolderError } from '../server/private-files.ts';
import { UsageError } from '../words/usage-error.ts';
import { exitCodeOf, exitCodes } from './exit-codes.ts';
import { hintFor } from './hints.ts';
import type { Io } from './io.ts';
import { shortWords } from './safe-text.ts';

const noServer: ReadonlySet<string> = new Set([
  'server_needed',
  'server_not_started',
  'server_not_stopped',
  'server_lost',
  'server_silent',
  'state_unavailable',
]);

const errorName = (error: unknown): string => {
  if (isServiceError(error) || error instanceof CallError) return error.code;
  if (error instanceof ConfigError) return 'config_invalid';
  if (error instanceof PrivateFileError) return 'unauthorized';
  if (error instanceof StateFolderError || error instanceof StoreError) return 'state_unavailable';
  return error instanceof UsageError ? 'usage' : 'internal';
};

const exitCodeOfName = (name: string): number => {
  if (name === 'usage') return exitCodes.usage;
  if (name === 'config_invalid') return exitCodes.configuration;
  return noServer.has(name) ? exitCodes.unavailable : exitCodeOf(name);
};

const errorFacts = (error: unknown): Readonly<Record<string, unknown>> =>
  isServiceError(error) || error instanceof CallError ? { ...error.facts } : {};

/** Its name, facts and message, without commands that help. */
export const describeError = (error: unknown) => ({
  code: errorName(error),
  facts: errorFacts(error),
  message: shortWords(messageOf(error)),
});

/** Its message with commands that help. */
export const describeForPerson = (error: unknown) => {
  const { code, facts, message } = describeError(error);
  const hint = hintFor(code, facts);
  return { code, facts, message: `${message}${hint === null ? '' : `; ${hint}`}` };
};

/** @returns the exit code */
export const reportError = (error: unknown, { words, env }: Invocation, io: Io): number => {
  const { code: name, facts, message } = describeForPerson(error);
  io.live('');
  if (words.includes('--json')) io.json({ error: { ...facts, code: name, message } });
  io.err(`agent: ${message}`);
  const variable = textIn(facts, 'variable');
  if (name === 'credential_missing' && variable !== null && env[variable])
    io.err(
      `note: ${variable} is set here, but was not where the server was started; end it with: agent server stop`,
    );
  return exitCodeOfName(name);
};
