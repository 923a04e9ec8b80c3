import { StoreError } from '../../actors/store/port.ts';
import { type ErrorCode, type ErrorFacts, isServiceError } from '../../machines/errors.ts';
import { textIn } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { CallError } from '../client/client.ts';
import { ConfigError } from '../config/config-error.ts';
import type { Invocation } from '../invocation.ts';
import { PrivateFileError, StateFolderError } from '../server/secrets/private-files.ts';
import { choosingKeys, commandAdvice } from '../words/other-tools.ts';
import { UsageError } from '../words/usage-error.ts';
import { exitCodeOf, exitCodes } from './exit-codes.ts';
import type { Io } from './io.ts';
import { shortWords } from './safe-text.ts';
import { clockText } from './times.ts';

type Hints = { readonly [Code in ErrorCode]?: (facts: ErrorFacts[Code]) => string | null };

const hints: Hints = {
  task_not_found: (facts) => {
    const use = commandAdvice(`run ${facts.task_id}`) ?? commandAdvice(facts.task_id);
    if (use !== null) return `use: ${use}`;
    if (facts.task_id.startsWith('wf-'))
      return `for a workflow: agent workflow show ${facts.task_id}, or: agent workflow list`;
    const meant = textIn(facts, 'did_you_mean');
    if (meant !== null) return `did you mean ${meant}?`;
    const role = textIn(facts, 'asked_role');
    return role === null
      ? "'agent list --all' shows the tasks"
      : `one word is an id of a task; to make a task of it: agent create ${facts.task_id} --role ${role} --run`;
  },
  event_not_allowed: ({ task_id, event, allowed }) => {
    if (['retry', 'delete'].includes(event) && allowed.includes('cancel'))
      return `'agent cancel ${task_id}' stops it`;
    return event === 'retry' && allowed.includes('reopen')
      ? `'agent reopen ${task_id}' puts it back in the queue`
      : null;
  },
  already_running: ({ task_id, parked_until: until }) =>
    until === undefined
      ? `watch it with 'agent logs -f ${task_id}' or stop it with 'agent cancel ${task_id}'`
      : `it goes on at ${clockText(until, Date.now())}; 'agent retry ${task_id}' tries now`,
  stale_attempt: ({ task_id, live_attempt }) =>
    `'agent show ${task_id}' shows what attempt ${live_attempt} asks`,
  credential_missing: () => "the flag for the fake model is '--model scripted'",
};
const hintsByCode = new Map<string, (facts: never) => string | null>(Object.entries(hints));

/** Commands that help with an error; null without any. */
export const hintFor = (code: string, facts: object): string | null =>
  hintsByCode.get(code)?.(facts as never) ?? null;

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

/** `options.max_cost_usd: …` as `--max-cost: …`: a person wrote a flag. */
const withFlags = (message: string): string =>
  message.replace(
    /\boptions\.(\w+?)(?:_seconds|_usd)?: /g,
    (_, name: string) => `--${name.replaceAll('_', '-')}: `,
  );

/** Its message with commands that help. */
export const describeForPerson = (error: unknown) => {
  const { code, facts, message: said } = describeError(error);
  const message = code === 'invalid_params' ? withFlags(said) : said;
  const hint = hintFor(code, facts);
  return { code, facts, message: `${message}${hint === null ? '' : `; ${hint}`}` };
};

/** @returns the exit code */
export const reportError = (error: unknown, { words, env }: Invocation, io: Io): number => {
  const { code: name, facts, message } = describeForPerson(error);
  io.live('');
  if (words.includes('--json')) io.json({ error: { ...facts, code: name, message } });
  io.err(`agent: ${message}`);
  const missing = textIn(facts, 'variable') ?? '';
  const variable = [missing, ...(missing === 'OPENAI_API_KEY' ? choosingKeys : [])].find(
    (each) => env[each],
  );
  if (name === 'credential_missing' && variable !== undefined)
    io.err(
      `note: ${variable} is set here, but was not where the server was started; end it with: agent server stop, or keep the key for every server: agent auth login <provider>`,
    );
  return exitCodeOfName(name);
};
