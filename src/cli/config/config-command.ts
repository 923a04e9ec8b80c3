import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import { isJsonObject } from '../../machines/json.ts';
import type { CommandContext } from '../client/command-context.ts';
import { findServer, isSilent, refusedConfigOf } from '../client/find-server.ts';
import { closest } from '../output/closest.ts';
import { hasTerminal, openEditor } from '../output/editor.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { oneLine } from '../output/safe-text.ts';
import { needsRestart } from '../server/reload.ts';
import { readServerFile } from '../server/server-file.ts';
import { keyAdvice } from '../words/other-tools.ts';
import { UsageError } from '../words/usage-error.ts';
import { configNow, loadConfig } from './config.ts';
import { ConfigError } from './config-error.ts';
import { originOf, valueAt } from './key-paths.ts';
import { missingPaths } from './missing-paths.ts';
import {
  projectOrNone,
  readByServer,
  readTextIfAny,
  requireAccepted,
  type Target,
} from './own-file.ts';
import { stateFiles } from './places/project.ts';
import { userFilesOf } from './places/user-files.ts';
import { configKeys, kindOfKey, partsOfKey } from './schema/config-keys.ts';
import type { Config } from './schema/config-schema.ts';

/** On Windows the signal would end the server. */
const canReload = process.platform !== 'win32';

/** The pid of a server that has proved itself; null where none runs. */
const pidOfServer = async ({ project }: CommandContext): Promise<number | null> => {
  const isThere = await findServer(project).then(
    (address) => address !== null,
    (error: unknown) => {
      if (isSilent(error)) return true;
      throw error;
    },
  );
  return isThere ? (readServerFile(stateFiles(project.stateDir).server)?.pid ?? null) : null;
};

const otherServersNote = 'note: servers of other projects read it when they start again';

const looksAfterMs = [250, 1_000] as const;

/** The refusal of the server once it has read its files; null: it took them. */
const refusalAfterReload = async ({ project }: CommandContext): Promise<string | null> => {
  for (const ms of looksAfterMs) {
    await setTimeout(ms);
    const address = await findServer(project).catch(() => null);
    if (address?.refusesConfig !== true) return null;
    if (ms === looksAfterMs.at(-1)) return refusedConfigOf(address);
  }
  return null;
};

/**
 * Lets the server of this project read its files again, and names what it reads only when it starts.
 * Of the servers of other projects nothing is known. `before`: what counted before the change.
 */
const reloadServer = async (
  context: CommandContext,
  scope: Target['scope'],
  before: Config | null,
): Promise<void> => {
  const { io } = context;
  const pid = await pidOfServer(context);
  const read = readByServer(context);
  const after = configNow({ config: read.config, project: context.project }, read.env);
  const kept = before === null || after === null ? ['it'] : needsRestart(before, after);
  if (pid !== null && canReload) process.kill(pid, 'SIGHUP');
  const refusal = pid !== null && canReload ? await refusalAfterReload(context) : null;
  if (refusal !== null) io.err(`warning: ${refusal}`);
  else if (pid !== null)
    io.err(
      kept.length === 0 && canReload
        ? 'note: the server that runs uses it from now on'
        : `note: the server that runs reads ${kept.join(', ') || 'it'} when it starts again: agent server restart`,
    );
  if (scope === 'everywhere') io.err(otherServersNote);
};

/** True when the draft replaces the file; false when the user gives up. @throws UsageError */
const editUntilValid = async (
  context: CommandContext,
  draft: string,
  target: string,
): Promise<boolean> => {
  const { io, env } = context;
  for (;;) {
    openEditor(draft, env);
    try {
      const given = { file: target, text: readFileSync(draft, 'utf8') };
      for (const left of await requireAccepted(context, given))
        io.err(`warning: servers still refuse the configuration: ${left}`);
      return true;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      io.err(`agent: ${error.message}`);
      const said = io.ask === null ? null : await io.ask('Edit it again? [Y/n] ');
      if (said === null || /^n/i.test(said)) return false;
    }
  }
};

/** Opens a copy beside the file in an editor; a copy that is not valid never replaces it. */
const editConfig = async (context: CommandContext, { target, scope }: Target): Promise<number> => {
  const { io, json } = context;
  if (!hasTerminal())
    throw new UsageError(
      'config edit opens an editor and needs a terminal; use: agent config set <key> <value>',
    );
  const folder = dirname(target);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Relative paths in it start at its folder.
  const draft = join(folder, `.edit-${randomBytes(6).toString('hex')}.json`);
  const before = readTextIfAny(target);
  const read = readByServer(context);
  const counted = configNow({ config: read.config, project: context.project }, read.env);
  const given = before ?? '{\n}\n';
  const kept = before === null ? `${target} was not written` : `${target} is as it was`;
  writeFileSync(draft, given, { flag: 'wx', mode: 0o600 });
  try {
    if (!(await editUntilValid(context, draft, target))) {
      io.err(kept);
      return exitCodes.failed;
    }
    const text = readFileSync(draft, 'utf8');
    const isChanged = text !== given;
    if (isChanged) await writeFileAtomically(target, text);
    if (json) io.json({ file: target, changed: isChanged });
    else io.out(isChanged ? `wrote ${target}` : kept);
    if (isChanged) await reloadServer(context, scope, counted);
    return exitCodes.done;
  } finally {
    rmSync(draft, { force: true });
  }
};

type ConfigTree = Readonly<Record<string, unknown>>;

/** A key may stand for all below it, as `workspace.setup`. @throws UsageError for an unknown key */
const requireKey = (key: string): string => {
  const known = configKeys().map(([name]) => name);
  const [, variable] = /^(\w+_(?:KEY|TOKEN))(?:=|$)/.exec(key) ?? [];
  if (key === 'api.key' || variable !== undefined)
    throw new UsageError(
      `a key stands in no configuration file; ${keyAdvice(variable ?? 'OPENAI_API_KEY')}`,
    );
  const [, name, value] = /^([\w.]+)=(.+)$/s.exec(key) ?? [];
  if (name !== undefined && known.includes(name))
    throw new UsageError(`use: agent config set ${name} ${value}`);
  const plain = partsOfKey(key).join('.');
  if (known.some((name) => `${name}.`.startsWith(`${plain}.`) || plain.startsWith(`${name}.`)))
    return key;
  const meant = closest(key, known);
  const isVerify = key.split('.').at(-1) === 'verify';
  const hint = isVerify
    ? 'give the commands of a run with --verify "<command>", or of a role with roles.<name>.verify'
    : meant === null
      ? 'see: agent config'
      : `did you mean ${meant}?`;
  throw new UsageError(`unknown key: ${key}; ${hint}`);
};

const load = ({ project, env }: CommandContext, config: string | undefined) =>
  loadConfig({ config, project }, env);

const showConfig = (context: CommandContext, file: string | undefined): number => {
  const { config, layers } = load(context, file);
  const rows = configKeys().flatMap(([key]) => {
    const value = valueAt(config, key);
    return value === undefined ? [] : [{ key, value, origin: originOf(layers, key) }];
  });
  if (context.json) context.io.json(rows);
  else
    for (const { key, value, origin } of rows)
      context.io.out(`${key} = ${oneLine(JSON.stringify(value))}  (${origin})`);
  return exitCodes.done;
};

const get = (context: CommandContext, file: string | undefined, key: string): number => {
  const { config, layers } = load(context, file);
  const value = valueAt(config, requireKey(key)) ?? null;
  if (context.json) context.io.json({ key, value, origin: originOf(layers, key) });
  else context.io.out(typeof value === 'string' ? value : JSON.stringify(value));
  return exitCodes.done;
};

const withValue = (
  tree: ConfigTree,
  [part = '', ...rest]: readonly string[],
  value: unknown,
): ConfigTree => {
  const inner = tree[part];
  return {
    ...tree,
    [part]: rest.length === 0 ? value : withValue(isJsonObject(inner) ? inner : {}, rest, value),
  };
};

/** Also without what is empty then. */
const withoutValue = (tree: ConfigTree, [part = '', ...rest]: readonly string[]): ConfigTree => {
  const { [part]: inner, ...others } = tree;
  if (rest.length === 0) return others;
  if (!isJsonObject(inner)) return tree;
  const left = withoutValue(inner, rest);
  return Object.keys(left).length === 0 ? others : { ...tree, [part]: left };
};

const parsedValue = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

const quotedJson = (value: unknown): string =>
  `'${JSON.stringify(value).replaceAll("'", String.raw`'\''`)}'`;

/** Says how to write a value that cannot be one word. */
const jsonHint = (key: string, given: unknown): string => {
  if (given === undefined) return '';
  // As an advice of ours shows it.
  const [placeholder] = typeof given === 'string' ? (/<\w+>|…/.exec(given) ?? []) : [];
  if (placeholder !== undefined)
    return `; put your own value in place of ${placeholder}${placeholder === '<usd>' ? ': a number, such as 5' : ''}`;
  const kind = kindOfKey(key);
  if (kind === 'list' && typeof given === 'string')
    return `; a list is written as JSON: agent config set ${key} ${quotedJson(given.split(','))}`;
  return kind === 'object' && !isJsonObject(given)
    ? `; an object is written as JSON: agent config set ${key} '{"<name>": …}'`
    : '';
};

/** @throws ConfigError without a place in a file that is not written */
const requireAcceptedValue = async (
  context: CommandContext,
  draft: { readonly file: string; readonly text: string },
  { key, value }: { readonly key: string; readonly value: unknown },
): Promise<readonly string[]> => {
  try {
    return await requireAccepted(context, draft);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const problems = error.message
      .replaceAll(`${draft.file}: `, '')
      .replaceAll(/ \(line \d+\)$/gm, '');
    throw new ConfigError(`nothing was written: ${problems}${jsonHint(key, value)}`, {
      cause: error,
    });
  }
};

const treeIn = (target: string): ConfigTree => {
  const tree: unknown = JSON.parse(readTextIfAny(target) ?? '{}');
  return isJsonObject(tree) ? tree : {};
};

/** Writes the file only if a server would take the configuration with it. @throws ConfigError */
const write = async (
  context: CommandContext,
  { target, scope }: Target,
  { key, value, next }: { key: string; value: unknown; next: ConfigTree },
): Promise<void> => {
  const { project } = context;
  const read = readByServer(context);
  const counted = configNow({ config: read.config, project }, read.env);
  const text = `${JSON.stringify(next, null, 2)}\n`;
  const left = await requireAcceptedValue(context, { file: target, text }, { key, value });
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  await writeFileAtomically(target, text);
  if (context.json) context.io.json({ key, file: target });
  else
    context.io.out(
      value === undefined ? `removed ${key} from ${target}` : `wrote ${key} to ${target}`,
    );
  for (const refusal of left)
    context.io.err(`warning: servers still refuse the configuration: ${refusal}`);
  if (left.length > 0) return;
  const { layers } = loadConfig({ config: read.config, project }, read.env);
  const counts = originOf(layers, key);
  if (value !== undefined && !isJsonObject(value) && counts !== target) {
    context.io.err(
      `note: it does not count in this project: ${counts} sets ${key}, and comes before ${target}`,
    );
    if (scope === 'everywhere') context.io.err(otherServersNote);
    return;
  }
  for (const missing of missingPaths(load(context, undefined)))
    if (missing.startsWith(`${key}: `)) context.io.err(`warning: ${missing}`);
  await reloadServer(context, scope, counted);
};

const set = async (
  context: CommandContext,
  target: Target,
  key: string,
  text: string,
): Promise<number> => {
  const value = parsedValue(text);
  const next = withValue(treeIn(target.target), partsOfKey(requireKey(key)), value);
  await write(context, target, { key, value, next });
  return exitCodes.done;
};

/** Then the next place counts: your file for every project, or the default. */
const unset = async (context: CommandContext, target: Target, key: string): Promise<number> => {
  const tree = treeIn(target.target);
  const next = withoutValue(tree, partsOfKey(requireKey(key)));
  if (JSON.stringify(next) === JSON.stringify(tree))
    throw new UsageError(`${key} is not set in ${target.target}; 'agent config' shows where it is`);
  await write(context, target, { key, value: undefined, next });
  return exitCodes.done;
};

export interface ConfigCommandArgs {
  readonly action: 'show' | 'get' | 'set' | 'unset' | 'path' | 'edit' | undefined;
  readonly key: string | undefined;
  readonly value: string | undefined;
  readonly global: boolean;
  readonly config: string | undefined;
}

/** Shows the configuration with origins, or changes the user's own files. @throws UsageError */
export const configCommand = (
  given: CommandContext,
  { action = 'show', key, value, global, config }: ConfigCommandArgs,
): number | Promise<number> => {
  const { cwd, io, env, json } = given;
  const context: CommandContext = {
    cwd,
    io,
    env,
    json,
    config: given.config,
    project: global ? projectOrNone(given).project : given.project,
    get connection() {
      return given.connection;
    },
  };
  const files = userFilesOf(context.project, env);
  const scope = global ? 'everywhere' : 'project';
  const target = files[scope];
  if (action === 'show') return showConfig(context, config);
  if (action === 'path') {
    if (context.json) context.io.json({ file: target });
    else context.io.out(target);
    return exitCodes.done;
  }
  if (action === 'edit') return editConfig(context, { target, scope });
  if (key === undefined) throw new UsageError(`config ${action} needs a key; see: agent config`);
  requireKey(key);
  if (action === 'get') return get(context, config, key);
  if (action === 'unset') return unset(context, { target, scope }, key);
  if (value === undefined)
    throw new UsageError(`config set needs a value: agent config set ${key} <value>`);
  return set(context, { target, scope }, key, value);
};
