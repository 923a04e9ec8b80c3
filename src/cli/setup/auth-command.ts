import type { CommandContext } from '../client/command-context.ts';
import { loadConfig } from '../config/config.ts';
import { projectOrNone } from '../config/own-file.ts';
import { type FoundKey, keyFault, keyPlaces, requireKeyed } from '../config/providers.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { askSecret } from '../output/ask.ts';
import { exitCodes } from '../output/exit-codes.ts';
import {
  changeKeys,
  keptKey,
  keptKeysFile,
  keptProviders,
  requireKeptKeys,
} from '../server/secrets/kept-keys.ts';
import { UsageError } from '../words/usage-error.ts';
import { foundText } from './backend-checks.ts';

const bytesAtMost = 4_096;

/** Ends at more than a key has, so that no endless input is read. */
const readInput = async (input: NodeJS.ReadStream): Promise<string> => {
  let text = '';
  for await (const chunk of input.setEncoding('utf8')) {
    text += String(chunk);
    if (text.length > bytesAtMost) break;
  }
  return text;
};

/** @throws UsageError, which does not repeat the text */
const requireKey = (text: string, provider: string): string => {
  const key = text.trim();
  const refuse = (why: string): never => {
    throw new UsageError(`no key was kept: ${why}`);
  };
  if (key === '')
    return refuse(
      `there is none; type it at the prompt, or: agent auth login ${provider} < <file with the key>`,
    );
  if (key.length > bytesAtMost) return refuse(`a key has at most ${bytesAtMost} characters`);
  const fault = keyFault(key);
  return fault === null ? key : refuse(fault);
};

const askKey = async ({ io }: CommandContext, provider: string): Promise<string> => {
  const { stdin, stderr } = process;
  if (stdin.isTTY !== true) return readInput(stdin);
  if (io.ask === null)
    throw new UsageError(
      `the prompt needs a terminal for its output, too; or give the key on standard input: agent auth login ${provider} < <file with the key>`,
    );
  return (await askSecret(`Key of ${provider} (it is not shown): `, stdin, stderr)) ?? '';
};

/** What comes before a kept key, or stays without one. */
const foundIn = (config: Config, env: NodeJS.ProcessEnv, provider: string): FoundKey | null =>
  keyPlaces(config, env).find(({ name }) => name === provider)?.found ?? null;

const login = async (context: CommandContext, config: Config, provider: string) => {
  const { io, env, json } = context;
  requireKeyed(config, provider);
  // Before anybody types a key for nothing.
  requireKeptKeys(env);
  const found = foundIn(config, env, provider);
  const key = requireKey(await askKey(context, provider), provider);
  await changeKeys(env, (keys) => ({ ...keys, [provider]: key }));
  const file = keptKeysFile(env);
  if (json) io.json({ provider, file });
  else io.out(`kept the key of ${provider} in ${file}; servers use it from their next call on`);
  if (found?.source === 'variable' || found?.source === 'key_file')
    io.err(
      `note: ${foundText(found, env)}, which comes before it, here and for servers started with it`,
    );
  return exitCodes.done;
};

const logout = async (context: CommandContext, config: Config, provider: string) => {
  const { io, env, json } = context;
  requireKeptKeys(env);
  // A provider that is configured no more may have a key.
  if (keptKey(env, provider) === null) requireKeyed(config, provider);
  let wasKept = false;
  await changeKeys(env, (keys) => {
    wasKept = Object.hasOwn(keys, provider);
    const { [provider]: _, ...others } = keys;
    return wasKept ? others : keys;
  });
  if (json) io.json({ provider, removed: wasKept });
  else io.out(wasKept ? `removed the key of ${provider}` : `no key of ${provider} was kept`);
  const left = foundIn(config, env, provider);
  if (left !== null && left.source !== 'not_needed')
    io.err(`note: ${foundText(left, env)}, so ${provider} still has a key`);
  return exitCodes.done;
};

const showStatus = (context: CommandContext, config: Config, provider: string | undefined) => {
  const { io, env, json } = context;
  requireKeptKeys(env);
  const places = keyPlaces(config, env);
  const unknown = keptProviders(env)
    .filter((kept) => !places.some(({ name }) => name === kept))
    .map((name) => ({ name, variables: [], found: null }));
  if (provider !== undefined && !unknown.some(({ name }) => name === provider))
    if (!places.some(({ name }) => name === provider)) requireKeyed(config, provider);
  const shown = [...places, ...unknown].filter(
    ({ name }) => provider === undefined || name === provider,
  );
  if (json) {
    io.json(
      shown.map(({ name, variables, found }) => ({
        provider: name,
        source: found?.source ?? null,
        ...(found?.source === 'variable' ? { variable: found.from } : {}),
        ...(found?.source === 'key_file' ? { file: found.from } : {}),
        ...(found?.source === 'kept' ? { file: keptKeysFile(env) } : {}),
        variables,
      })),
    );
    return exitCodes.done;
  }
  const column = Math.max(...shown.map(({ name }) => name.length)) + 2;
  for (const { name, found } of shown) {
    const isUnknown = unknown.some((one) => one.name === name);
    const none = isUnknown
      ? `a key is kept, but no provider has this name; remove it: agent auth logout ${name}`
      : `no key; keep one: agent auth login ${name}`;
    io.out(`${name.padEnd(column)}${found === null ? none : foundText(found, env)}`);
  }
  if (provider === undefined)
    io.err('note: a server that runs has the variables of the shell that started it');
  return exitCodes.done;
};

export interface AuthArgs {
  readonly action: 'login' | 'status' | 'logout';
  readonly provider: string | undefined;
  readonly config: string | undefined;
}

/** Keeps keys of providers for every server of the user. @throws UsageError, ConfigError */
export const authCommand = async (
  context: CommandContext,
  { action, provider, config: file }: AuthArgs,
): Promise<number> => {
  const { project } = projectOrNone(context);
  const { config } = loadConfig({ config: file, project }, context.env);
  if (action === 'status') return showStatus(context, config, provider);
  if (provider === undefined)
    throw new UsageError(
      `auth ${action} needs a provider: agent auth ${action} <provider>; see: agent auth status`,
    );
  return action === 'login' ? login(context, config, provider) : logout(context, config, provider);
};
