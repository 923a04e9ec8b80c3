import { readFileSync } from 'node:fs';
import { type Config, configSchema } from './config-schema.ts';

/** The configuration cannot be used: the process ends with 78 before it opens anything. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export interface ConfigFlags {
  readonly config?: string | undefined;
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly maxConcurrent?: number | undefined;
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

interface Override {
  readonly source: string;
  readonly path: readonly [string, string];
  readonly value: unknown;
}

const number = (text: string): unknown => (/^\d+$/.test(text) ? Number(text) : text);

const fromEnvironment = (env: NodeJS.ProcessEnv): readonly Override[] => {
  const read = (source: string, path: readonly [string, string], parse: (text: string) => unknown = (text) => text) => {
    const text = env[source];
    return text === undefined || text === '' ? [] : [{ source, path, value: parse(text) }];
  };
  return [
    ...read('SERVER_HOST', ['server', 'host']),
    ...read('SERVER_PORT', ['server', 'port'], number),
    ...read('MAX_CONCURRENT_AGENTS', ['server', 'max_concurrent_agents'], number),
    ...read('API_MODE', ['api', 'mode']),
    ...read('OPENAI_BASE_URL', ['api', 'base_url']),
    ...read('LOG_LEVEL', ['logging', 'level']),
    ...read('LOG_FORMAT', ['logging', 'format']),
  ];
};

const fromFlags = ({ port, host, maxConcurrent }: ConfigFlags): readonly Override[] => [
  ...(port === undefined ? [] : [{ source: '--port', path: ['server', 'port'] as const, value: port }]),
  ...(host === undefined ? [] : [{ source: '--host', path: ['server', 'host'] as const, value: host }]),
  ...(maxConcurrent === undefined
    ? []
    : (['max_concurrent_agents', 'worker_pool_size'] as const).map((key) => ({
        source: '--max-concurrent',
        path: ['server', key] as const,
        value: maxConcurrent,
      }))),
];

const withOverrides = (tree: Tree, overrides: readonly Override[]): Tree => {
  const merged: Tree = { ...tree };
  for (const { path, value } of overrides) {
    const [section, key] = path;
    const before = merged[section];
    merged[section] = { ...(isTree(before) ? before : {}), [key]: value };
  }
  return merged;
};

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
  const overrides = [...fromEnvironment(env), ...fromFlags(flags)];
  const parsed = configSchema.safeParse(withOverrides(tree, overrides));
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => {
      const key = path.join('.');
      const source = overrides.findLast((override) => override.path.join('.') === key)?.source ?? file ?? 'defaults';
      return `${source}: ${key || 'file'}: ${message}`;
    });
    throw new ConfigError(problems.join('\n'));
  }
  const server = tree['server'];
  const portChosen =
    overrides.some(({ path }) => path.join('.') === 'server.port') || (isTree(server) && 'port' in server);
  return { config: parsed.data, file, portChosen };
};

/** How many agents one process runs at once: the service's cap, and the pool of this process (CONTRACT 8). */
export const effectiveCap = ({ server }: Config): number =>
  Math.min(server.max_concurrent_agents, server.worker_pool_size ?? server.max_concurrent_agents);
