import { lstatSync, mkdirSync, unwatchFile, watchFile } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomically } from '../../../actors/files/atomic-write.ts';
import { parseJson } from '../../../machines/json.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { ConfigError } from '../../config/config-error.ts';
import { onceATurn } from '../../config/once-a-turn.ts';
import { configFolderOf } from '../../config/places/home.ts';
import { readPrivateText } from './private-files.ts';

/** Keys by the name of their provider. */
type Keys = Readonly<Record<string, string>>;

export const keptKeysFile = (env: NodeJS.ProcessEnv): string =>
  join(configFolderOf(env), 'keys.json');

const bytesAtMost = 65_536;
/** Of replaced and removed keys, which a call in flight may still name. */
const rememberedAtMost = 256;
const schema = z.record(z.string(), z.string().min(1));
const none: Keys = {};

/** @throws ConfigError, which says what to do */
const readKeys = (path: string): Keys => {
  const text = readPrivateText(path, 'keys of agent auth login', bytesAtMost);
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new ConfigError(
    `${path} is not as agent auth login writes it; remove it, then log in again: agent auth login <provider>`,
  );
};

/** Differs after each change, also of the mode; null where no file is. */
const stampOf = (path: string): string | null => {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false, bigint: true });
    return found === undefined ? null : `${found.ctimeNs}/${found.ino}`;
  } catch {
    return 'unreadable';
  }
};

interface Look {
  readonly stamp: string | null;
  readonly keys: Keys;
  /** Why the file does not count; null: it does. */
  readonly problem: string | null;
  /** Every key since the start of this process. */
  readonly seen: readonly string[];
}

const looks = new Map<string, Look>();
const looksAtMost = 16;

/** Reads the file again only after a change, so that a login counts for a server that runs. */
const look = (env: NodeJS.ProcessEnv): Look => {
  const path = keptKeysFile(env);
  const before = looks.get(path);
  const stamp = stampOf(path);
  if (before !== undefined && before.stamp === stamp) return before;
  let [keys, problem]: [Keys, string | null] = [none, null];
  try {
    keys = stamp === null ? none : readKeys(path);
  } catch (error) {
    problem = messageOf(error);
  }
  const seen = [...new Set([...(before?.seen ?? []), ...Object.values(keys)])];
  const now: Look = { stamp, keys, problem, seen: seen.slice(-rememberedAtMost) };
  looks.set(path, now);
  const [oldest] = looks.keys();
  if (looks.size > looksAtMost && oldest !== undefined) looks.delete(oldest);
  return now;
};

/** Null without one, and where the file is refused. */
export const keptKey = (env: NodeJS.ProcessEnv, provider: string): string | null => {
  const { keys } = look(env);
  return Object.hasOwn(keys, provider) ? (keys[provider] ?? null) : null;
};

export const keptProviders = (env: NodeJS.ProcessEnv): readonly string[] =>
  Object.keys(look(env).keys);

/** Why the file does not count, and what to do; null: it does. */
export const keptKeysProblem = (env: NodeJS.ProcessEnv): string | null => look(env).problem;

/** @throws ConfigError when others can read the file, or it cannot be read */
export const requireKeptKeys = (env: NodeJS.ProcessEnv): void => {
  const problem = keptKeysProblem(env);
  if (problem !== null) throw new ConfigError(problem);
};

/** For a redactor, which asks for each text: with keys that were replaced or removed since. */
export const keptSecrets = (env: NodeJS.ProcessEnv): (() => readonly string[]) => {
  const lookAgain = onceATurn(() => void look(env));
  return () => {
    lookAgain();
    return looks.get(keptKeysFile(env))?.seen ?? [];
  };
};

const watchMs = 2_000;

/** Tells the providers whose key another login or logout has changed. @returns how to stop */
export const watchKeptKeys = (
  env: NodeJS.ProcessEnv,
  onChange: (providers: readonly string[]) => void,
): (() => void) => {
  let { keys: before } = look(env);
  const check = (): void => {
    const { keys } = look(env);
    const names = [...new Set([...Object.keys(before), ...Object.keys(keys)])];
    const changed = names.filter((name) => keys[name] !== before[name]);
    before = keys;
    if (changed.length > 0) onChange(changed);
  };
  const path = keptKeysFile(env);
  watchFile(path, { interval: watchMs, persistent: false }, check);
  return () => unwatchFile(path, check);
};

/** Two at once lose nothing. @throws ConfigError, LockedError after ten seconds */
export const changeKeys = async (
  env: NodeJS.ProcessEnv,
  change: (keys: Keys) => Keys,
): Promise<void> => {
  const path = keptKeysFile(env);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // It loads the database driver.
  const { withLock } = await import('../../../actors/store/process-lock.ts');
  await withLock(join(dirname(path), '.keys.lock'), async () => {
    const before = stampOf(path) === null ? none : readKeys(path);
    const after = change(before);
    if (after !== before) await writeFileAtomically(path, `${JSON.stringify(after, null, 2)}\n`);
  });
};
