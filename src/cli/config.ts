import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { z } from 'zod';
import { type ConfigFlags, type Override, overridesFrom } from './config-overrides.ts';
import { type Config, configSchema, configSections } from './config-schema.ts';

/** The configuration cannot be used: the process ends with 78 before it opens anything. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

type Tree = { [key: string]: unknown };
const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value);

const readTree = (path: string): Tree => {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new ConfigError(`${path}: the configuration file cannot be read; name another with --config`, { cause });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ConfigError(`${path}: not JSON: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
  if (!isTree(value)) throw new ConfigError(`${path}: expected a JSON object`);
  return value;
};

const withOverrides = (tree: Tree, overrides: readonly Override[]): Tree => {
  const merged: Tree = { ...tree };
  for (const { path, value } of overrides) {
    const [section, key] = path;
    const before = merged[section];
    merged[section] = { ...(isTree(before) ? before : {}), [key]: value };
  }
  return merged;
};

const problemsOf = ({ error }: z.ZodSafeParseResult<unknown>, source: string): readonly string[] =>
  (error?.issues ?? []).map(({ path, message }) => `${source}: ${path.join('.') || 'file'}: ${message}`);

export interface LoadedConfig {
  readonly config: Config;
  /** The file that was read, or null. */
  readonly file: string | null;
  /** Whether somebody chose the port, so that another must not be taken instead. */
  readonly portChosen: boolean;
}

/**
 * Defaults < file < environment < flags. The file is `--config`, else `AGENT_SERVER_CONFIG`, else none.
 * @throws ConfigError naming file or variable, key, and what was expected
 */
export const loadConfig = (flags: ConfigFlags, env: NodeJS.ProcessEnv): LoadedConfig => {
  const file = flags.config ?? (env['AGENT_SERVER_CONFIG'] || null);
  const tree = file === null ? {} : readTree(file);
  const overrides = overridesFrom(flags, env);
  const fileName = file ?? 'defaults';
  // Each by itself first: what is wrong is said even where another value stands over it.
  const problems = [
    ...problemsOf(configSections.safeParse(tree), fileName),
    ...overrides.flatMap((one) => problemsOf(configSections.safeParse(withOverrides({}, [one])), one.source)),
  ];
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  const parsed = configSchema.safeParse(withOverrides(tree, overrides));
  if (!parsed.success) throw new ConfigError(problemsOf(parsed, fileName).join('\n'));
  const server = tree['server'];
  const portChosen =
    overrides.some(({ path }) => path.join('.') === 'server.port') || (isTree(server) && 'port' in server);
  return { config: parsed.data, file, portChosen };
};

/** A path that the configuration names counts from the folder of its file. */
export const configFolder = ({ file }: Pick<LoadedConfig, 'file'>): string => (file === null ? '.' : dirname(file));

/** How many agents one process runs at once: the service's cap, and the pool of this process (CONTRACT 8). */
export const effectiveCap = ({ server }: Config): number =>
  Math.min(server.max_concurrent_agents, server.worker_pool_size);
