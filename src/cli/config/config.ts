import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Parsed, parseWithProblems, type SchemaProblem } from '../../http/schema-problems.ts';
import { messageOf } from '../../machines/message-of.ts';
import { closest } from '../output/closest.ts';
import { keptKeysProblem } from '../server/secrets/kept-keys.ts';
import { ConfigError } from './config-error.ts';
import { linesOfJson } from './json-lines.ts';
import type { ConfigLayer } from './key-paths.ts';
import type { Project } from './places/project.ts';
import { existingUserFiles, userFilesOf } from './places/user-files.ts';
import { type Policies, policyLayers, readPolicies, refusedAddresses } from './policy.ts';
import { placesOfKey } from './schema/config-keys.ts';
import { type Config, configSchema, configSections } from './schema/config-schema.ts';

/** `source` names the variable or flag. */
interface Override {
  readonly source: string;
  readonly path: readonly [section: string, key: string];
  readonly value: unknown;
}

export interface ConfigFlags {
  /** The project whose configuration in the user's folder counts. */
  readonly project?: Pick<Project, 'defaultDir'>;
  readonly config?: string;
  /** A text that counts in place of a file, which is not written yet. */
  readonly draft?: { readonly file: string; readonly text: string };
  readonly port?: number;
  readonly host?: string;
  readonly maxConcurrent?: number;
  readonly store?: string;
}

const parseNumber = (text: string): unknown => (/^\d+$/.test(text) ? Number(text) : text);

const fromEnvironment = (env: NodeJS.ProcessEnv): readonly Override[] => {
  const read = (
    source: string,
    path: Override['path'],
    parse: (text: string) => unknown = (text) => text,
  ) => {
    const text = env[source];
    return text === undefined || text === '' ? [] : [{ source, path, value: parse(text) }];
  };
  return [
    ...read('SERVER_HOST', ['server', 'host']),
    ...read('SERVER_PORT', ['server', 'port'], parseNumber),
    ...read('MAX_CONCURRENT_AGENTS', ['server', 'max_concurrent_agents'], parseNumber),
    ...read('API_MODE', ['api', 'mode']),
    ...read('OPENAI_BASE_URL', ['api', 'base_url']),
    ...read('LOG_LEVEL', ['logging', 'level']),
    ...read('LOG_FORMAT', ['logging', 'format']),
    ...read('OTEL_EXPORTER_OTLP_ENDPOINT', ['telemetry', 'otlp_endpoint']),
  ];
};

const fromFlags = ({ port, host, maxConcurrent, store }: ConfigFlags): readonly Override[] => [
  ...(port === undefined
    ? []
    : [{ source: '--port', path: ['server', 'port'] as const, value: port }]),
  ...(host === undefined
    ? []
    : [{ source: '--host', path: ['server', 'host'] as const, value: host }]),
  ...(store === undefined
    ? []
    : [{ source: '--store', path: ['store', 'url'] as const, value: store }]),
  ...(maxConcurrent === undefined
    ? []
    : [
        {
          source: '--max-concurrent',
          path: ['server', 'max_concurrent_agents'] as const,
          value: maxConcurrent,
        },
      ]),
];

/** Later overrides win. */
export const overridesFrom = (flags: ConfigFlags, env: NodeJS.ProcessEnv): readonly Override[] => [
  ...fromEnvironment(env),
  ...fromFlags(flags),
];

type Tree = { [key: string]: unknown };
const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

interface ReadFile {
  readonly text: string;
  readonly tree: Tree;
}

const readTree = (path: string, draft: ConfigFlags['draft']): ReadFile => {
  let text: string;
  try {
    text = draft?.file === path ? draft.text : readFileSync(path, 'utf8');
  } catch (cause) {
    throw new ConfigError(
      `${path}: the configuration file cannot be read; name another with --config`,
      { cause },
    );
  }
  let value: unknown;
  let namesPrototype = false;
  try {
    value = JSON.parse(text, (key, inner: unknown) => {
      namesPrototype ||= key === '__proto__';
      return inner;
    });
  } catch (cause) {
    const { fault } = linesOfJson(text);
    const where = fault === null ? messageOf(cause) : `line ${fault.line}: ${fault.problem}`;
    throw new ConfigError(`${path}: not JSON: ${where}`, { cause });
  }
  // Merged with other files it would be no key of its own, and what it holds would count unseen.
  if (namesPrototype)
    throw new ConfigError(`${path}: __proto__ cannot be the name of a key; remove it`);
  if (!isTree(value)) throw new ConfigError(`${path}: expected a JSON object`);
  return { text, tree: value };
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

/** Objects are merged, key by key; anything else is replaced. */
const merged = (under: Tree, over: Tree): Tree => {
  const result: Tree = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const before = result[key];
    result[key] = isTree(before) && isTree(value) ? merged(before, value) : value;
  }
  return result;
};

/** One hub serves all projects of a person. */
const notOfProject = (
  { project }: ConfigFlags,
  env: NodeJS.ProcessEnv,
  source: string,
  tree: Tree,
): readonly string[] =>
  project !== undefined && 'hub' in tree && source === userFilesOf(project, env).project
    ? [
        `${source}: hub: one hub serves all your projects; set it in your file for every project: agent config set hub.port <port> --global`,
      ]
    : [];

const absolute = (file: string, value: unknown): unknown =>
  typeof value === 'string' ? resolve(dirname(file), value) : value;

/** Relative paths of a file that another one is laid over start at its own folder. */
const withOwnPaths = (file: string, tree: Tree): Tree => {
  const { api, roles } = tree;
  const withFile = (role: unknown): unknown =>
    isTree(role) && 'file' in role ? { ...role, file: absolute(file, role['file']) } : role;
  return {
    ...tree,
    ...(isTree(api) && 'script' in api
      ? { api: { ...api, script: absolute(file, api['script']) } }
      : {}),
    ...(isTree(roles)
      ? { roles: Object.fromEntries(Object.entries(roles).map(([k, role]) => [k, withFile(role)])) }
      : {}),
  };
};

const describeConfigProblem = ({ path, problem, knownKeys }: SchemaProblem): string => {
  const name = String(path.at(-1));
  const meant =
    knownKeys === undefined
      ? null
      : (closest(name, knownKeys) ?? (placesOfKey(name).slice(0, 3).join(' or ') || null));
  return `${path.join('.') || 'file'}: ${problem}${meant === null ? '' : `; did you mean ${meant}?`}`;
};

/** The line of a place in a text; for a missing key, that of its owner. */
export const lineOf = (text: string, path: readonly PropertyKey[]): number | null => {
  const lines = linesOfJson(text).of;
  const known = path
    .map((_, at) => lines.get(JSON.stringify(path.slice(0, path.length - at))))
    .find((line) => line !== undefined);
  return known ?? null;
};

/** ` (line 3)` */
const lineText = (text: string, path: readonly PropertyKey[]): string => {
  const line = lineOf(text, path);
  return line === null ? '' : ` (line ${line})`;
};

const problemLines = (parsed: Parsed<unknown>, source: string, text = ''): readonly string[] =>
  parsed.ok
    ? []
    : parsed.problems.map(
        (problem) => `${source}: ${describeConfigProblem(problem)}${lineText(text, problem.path)}`,
      );

export interface LoadedConfig extends Policies {
  readonly config: Config;
  /** Null when no file is named and the default file is missing. */
  readonly file: string | null;
  /** The files of the user that were read. */
  readonly files: readonly string[];
  /** The file of `--config` or `AGENT_SERVER_CONFIG`. */
  readonly named: string | null;
  /** True for a named file, false for the default one. */
  readonly fileChosen: boolean;
  /** Files, variables and flags by name; a later one overrides. */
  readonly layers: readonly ConfigLayer[];
  /** True when the user chose the port: then no other port replaces it. */
  readonly portChosen: boolean;
  /** The provider of models that name none, once a key has chosen another than openai. */
  readonly defaultProvider?: string;
  /** Why the keys that are kept do not count now; null: they do. */
  readonly keysProblem?: () => string | null;
  /** Which model a key has chosen, why, and how to choose another. */
  readonly choice?: string;
}

/** The default file of this package. A file of that name in the project is ignored. */
export const defaultFile = (): string | null => {
  const path = fileURLToPath(new URL('../../../configs/agent-server.json', import.meta.url));
  return existsSync(path) ? path : null;
};

/** The default port in the file of this package is not the user's choice. */
const isPortChosen = (tree: ConfigLayer['tree'], isShipped: boolean): boolean => {
  const port = isTree(tree['server']) ? tree['server']['port'] : undefined;
  return port !== undefined && !(isShipped && port === configSections.parse({}).server.port);
};

/** The default file lies under the user's files, unless one was named: its values are defaults. */
const filesFor = (
  { config, project, draft }: ConfigFlags,
  env: NodeJS.ProcessEnv,
): {
  readonly named: string | null;
  readonly files: readonly string[];
  /** The file of this package, when it counts. */
  readonly shipped: string | null;
  readonly fileChosen: boolean;
} => {
  const named = config ?? (env['AGENT_SERVER_CONFIG'] || null);
  const own = project === undefined ? [] : existingUserFiles(project, env, draft?.file);
  const chosen = [...own, ...(named === null ? [] : [named])];
  const shipped = named === null ? defaultFile() : null;
  const files = shipped === null ? chosen : [shipped, ...chosen];
  return { named, files, shipped, fileChosen: chosen.length > 0 };
};

/**
 * Defaults < the user's files < the named file < environment < flags. The named file is `--config`,
 * else `AGENT_SERVER_CONFIG`.
 * @throws ConfigError naming file or variable, key, and what was expected
 */
export const loadConfig = (flags: ConfigFlags, env: NodeJS.ProcessEnv): LoadedConfig => {
  const { named, files, shipped, fileChosen } = filesFor(flags, env);
  const file = files.at(-1) ?? null;
  const read = files.map((source) => ({ source, ...readTree(source, flags.draft) }));
  const layers = read.map(({ source, tree }) => ({
    source,
    tree: source === file ? tree : withOwnPaths(source, tree),
  }));
  const overrides = overridesFrom(flags, env);
  // Each section first: a wrong value is reported even where another source overrides it.
  const problems = [
    ...read.flatMap(({ source, text, tree }) =>
      problemLines(parseWithProblems(configSections, tree), source, text),
    ),
    ...read.flatMap(({ source, tree }) => notOfProject(flags, env, source, tree)),
    ...overrides.flatMap((one) =>
      problemLines(parseWithProblems(configSections, withOverrides({}, [one])), one.source),
    ),
  ];
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  const tree = layers.reduce<Tree>((under, layer) => merged(under, layer.tree), {});
  const found = readPolicies(env);
  const own = withOverrides(tree, overrides);
  const rules = policyLayers(own, found, merged);
  const counted = rules.reduce<Tree>((under, layer) => merged(under, layer.tree), own);
  const parsed = parseWithProblems(configSchema, counted);
  if (!parsed.ok) throw new ConfigError(problemLines(parsed, file ?? 'defaults').join('\n'));
  const refused = refusedAddresses(own, parsed.value.policy);
  if (refused.length > 0) throw new ConfigError(refused.join('\n'));
  const portChosen =
    overrides.some(({ path }) => path.join('.') === 'server.port') ||
    layers.some(({ source, tree: own }) => isPortChosen(own, source === shipped));
  const given = overrides.map((one) => ({ source: one.source, tree: withOverrides({}, [one]) }));
  return {
    config: parsed.value,
    file,
    files: files.filter((each) => each !== shipped),
    named,
    fileChosen,
    portChosen,
    layers: [...layers, ...given, ...rules],
    ...found,
    keysProblem: () => keptKeysProblem(env),
  };
};

/** What counts now; null while a file is not valid. */
export const configNow = (flags: ConfigFlags, env: NodeJS.ProcessEnv): Config | null => {
  try {
    return loadConfig(flags, env).config;
  } catch (error) {
    if (error instanceof ConfigError) return null;
    throw error;
  }
};

/** Relative paths in the configuration start here. */
export const configFolder = ({ file }: Pick<LoadedConfig, 'file'>): string =>
  file === null ? '.' : dirname(file);

/** The lower of the service's cap and this process's pool. */
export const effectiveCap = ({ server }: Config): number =>
  Math.min(server.max_concurrent_agents, server.worker_pool_size);
