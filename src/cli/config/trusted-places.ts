import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { findProgram } from '../../actors/process/find-program.ts';
import { forEachRole } from '../../machines/task.ts';
import { ownRoleFiles } from '../roles/own-role.ts';
import { keptKeysFile } from '../server/secrets/kept-keys.ts';
import { configFolder, type LoadedConfig } from './config.ts';
import { ConfigError } from './config-error.ts';
import { configFolderOf } from './places/home.ts';
import { type Project, stateFolders, taskFiles } from './places/project.ts';
import { liesIn, repositoryTop } from './places/project-root.ts';
import { storeFor } from './store.ts';

/** Something that the server obeys, runs or keeps, and the key that names it. */
export interface TrustedPlace {
  readonly key: string;
  readonly path: string;
  /** Whoever reads it can act as the server. */
  readonly isSecret?: boolean;
}

/** Where a command of the configuration starts, and where its program is looked for. */
interface CommandPlace {
  readonly cwd: string;
  readonly root: string;
  readonly path: string;
}

/** Null where nothing is. A link that leads nowhere counts as a file. */
const kindOf = (path: string): 'file' | 'folder' | null => {
  try {
    if (!lstatSync(path).isSymbolicLink()) return statSync(path).isDirectory() ? 'folder' : 'file';
  } catch {
    return null;
  }
  return existsSync(path) && statSync(path).isDirectory() ? 'folder' : 'file';
};

/** Parts of a word that may be paths, also where a shell or a flag has several in one word. */
const partsOfWord = (word: string): readonly string[] =>
  word.split(/[\s;|&()<>"'`=,]+/).filter((part) => part !== '' && part !== '.' && part !== '..');

/** A relative name is a path where there is such a file: in the folder of the command, or the project. */
const filesNamed = (part: string, { cwd, root }: CommandPlace): readonly string[] => {
  if (isAbsolute(part)) return kindOf(part) === 'folder' ? [] : [part];
  const bases = part.includes('/') ? [cwd, root] : [cwd];
  return bases.map((base) => join(base, part)).filter((path) => kindOf(path) === 'file');
};

const placesOfCommand = (
  key: string,
  words: readonly string[],
  place: CommandPlace,
): readonly TrustedPlace[] => {
  const [program = ''] = words;
  const found = program.includes('/')
    ? [resolve(place.cwd, program)]
    : [findProgram(program, place.path)];
  const named = words.flatMap(partsOfWord).flatMap((part) => filesNamed(part, place));
  return [...found, ...named].flatMap((path) => (path === null ? [] : [{ key, path }]));
};

const ownPrograms = (
  { config: { api, tracker, roles } }: LoadedConfig,
  path: string,
): readonly TrustedPlace[] => {
  const backends = [api.backend, ...Object.values(roles).map((own) => own?.backend)];
  const mayUse = (name: 'codex' | 'claude'): boolean =>
    backends.includes('auto') || backends.includes(name);
  const named: readonly (readonly [string, string | undefined, string, boolean])[] = [
    ['tracker.bd_path', tracker.bd_path, 'bd', tracker.mode !== 'embedded'],
    ['api.codex_path', api.codex_path, 'codex', mayUse('codex')],
    ['api.claude_path', api.claude_path, 'claude', mayUse('claude')],
    ['git', undefined, 'git', true],
  ];
  return named.flatMap(([key, given, name, isUsed]) => {
    if (given !== undefined) return [{ key, path: given }];
    const found = isUsed ? findProgram(name, path) : null;
    return found === null ? [] : [{ key: `${key} (${name} on PATH)`, path: found }];
  });
};

/** Everything that the server trusts, outside its state folder. @throws ConfigError, StoreError */
const trustedPlaces = (
  loaded: LoadedConfig,
  project: Project,
  env: NodeJS.ProcessEnv,
): readonly TrustedPlace[] => {
  const { api, notify, mcp, providers, server, store } = loaded.config;
  const path = env['PATH'] ?? '';
  const inProject = { cwd: project.root, root: project.root, path };
  const inState = { ...inProject, cwd: project.stateDir };
  const one = (
    key: string,
    given: string | undefined,
    isSecret = false,
  ): readonly TrustedPlace[] => (given === undefined ? [] : [{ key, path: given, isSecret }]);
  const choice = store.url === undefined ? null : storeFor(loaded.config, project, env);
  const keptKeys = keptKeysFile(env);
  return [
    ...one('keys of agent auth login', kindOf(keptKeys) === null ? undefined : keptKeys, true),
    ...loaded.files.flatMap((file) => {
      const workflows = join(dirname(resolve(file)), 'workflows');
      return [
        { key: 'the configuration file', path: resolve(file) },
        ...(kindOf(workflows) === null
          ? []
          : one('the workflows of your configuration', workflows)),
      ];
    }),
    ...one('server.token_file', server.token_file, true),
    ...one('store.url', choice?.kind === 'sqlite' ? choice.file : undefined, true),
    ...ownPrograms(loaded, path),
    ...placesOfCommand('api.command', api.command ?? [], inProject),
    ...placesOfCommand('api.acp.command', api.acp.command ?? [], inProject),
    ...notify.commands.flatMap(({ command }, at) =>
      placesOfCommand(`notify.commands.${at}.command`, command, inState),
    ),
    ...Object.entries(providers).flatMap(([name, { key_file }]) =>
      one(`providers.${name}.key_file`, key_file, true),
    ),
    ...notify.webhooks.flatMap(({ secret_file }, at) =>
      one(`notify.webhooks.${at}.secret_file`, secret_file, true),
    ),
    ...Object.entries(mcp.servers).flatMap(([name, { command, args }]) =>
      command === undefined
        ? []
        : placesOfCommand(
            `mcp.servers.${name}.command`,
            // Relative arguments are the server's own matter: it starts elsewhere.
            [command, ...args.filter(isAbsolute)],
            inState,
          ),
    ),
    ...Object.values(forEachRole((role) => ownRoleFiles(loaded, role))).flat(),
    ...one('api.script', api.script && resolve(configFolder(loaded), api.script)),
  ];
};

/** The server's own files and folders, as written and behind their links: no agent gets a copy. */
export const serverPlaces = (
  loaded: LoadedConfig,
  project: Project,
  env: NodeJS.ProcessEnv,
): readonly string[] => {
  const { own, shared } = stateFolders(env);
  const places = trustedPlaces(loaded, project, env);
  // The programs of assistants may read their own arguments.
  const ours = places.filter(({ key }) => !/^api\.(acp\.)?command$/.test(key));
  return [...pathsOf(ours), configFolderOf(env), shared, ...own, project.stateDir];
};

const whyChanged = ({ workspace }: LoadedConfig['config']): string | null => {
  if (workspace.mode === 'shared') return 'workspace.mode is shared';
  return workspace.merge === 'none' ? null : `workspace.merge is ${workspace.merge}`;
};

/** The folders that agents change: of attempts, and the project with its repository. */
const agentFolders = (project: Project) => {
  const top = repositoryTop(project.root);
  const { worktrees } = taskFiles(project);
  return { top, worktrees, all: [project.root, ...(top === null ? [] : [top]), worktrees] };
};

/**
 * What the server trusts and agents could change, because it lies in the project, its repository or
 * a worktree, by its path or by a link on the way. Refused where an agent's change takes effect
 * without a person. @returns the rest, which agents may not change and a diff shows first
 * @throws ConfigError, which names each key and path
 */
export const requireTrustedOutside = (
  loaded: LoadedConfig,
  project: Project,
  env: NodeJS.ProcessEnv,
): readonly TrustedPlace[] => {
  const { top, worktrees, all: folders } = agentFolders(project);
  const copied = [
    ...(top === null ? [project.root] : []),
    ...loaded.config.workspace.copy.map((path) => join(project.root, path)),
  ];
  const inside = trustedPlaces(loaded, project, env).filter(({ path }) => liesIn(path, folders));
  const changed = whyChanged(loaded.config);
  const problems = inside.flatMap(({ key, path, isSecret }) => {
    const folder = folders.find((each) => liesIn(path, [each])) ?? project.root;
    const place = `${key}: ${path} lies in ${folder}`;
    const remedy = 'move it to a folder outside';
    if (changed !== null) return [`${place}, which agents change (${changed}); ${remedy}`];
    if (liesIn(path, [worktrees])) return [`${place}, where agents work; ${remedy}`];
    return isSecret && liesIn(path, copied)
      ? [`${place}, of which agents get a copy; ${remedy}`]
      : [];
  });
  if (problems.length > 0) throw new ConfigError([...new Set(problems)].join('\n'));
  return inside;
};

/**
 * Without the folders of PATH in which agents put programs for the server to find, such as
 * `node_modules/.bin` under npx. The same where an agent's change waits for a person.
 */
export const trustedPath = (
  { config }: LoadedConfig,
  project: Project,
  path: string | undefined,
): string | undefined => {
  if (path === undefined || whyChanged(config) === null) return path;
  const { all } = agentFolders(project);
  const isOutside = (folder: string): boolean => isAbsolute(folder) && !liesIn(folder, all);
  return path.split(delimiter).filter(isOutside).join(delimiter);
};

const realPathOf = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};

/** The places as paths, as written and behind their links. */
export const pathsOf = (places: readonly TrustedPlace[]): readonly string[] => [
  ...new Set(places.flatMap(({ path }) => [path, realPathOf(path)])),
];

/** One line for each, for the start of a server and for `agent doctor`. */
export const heldNotes = (places: readonly TrustedPlace[]): readonly string[] => [
  ...new Set(
    places.map(
      ({ key, path }) =>
        `${key}: ${path} lies where agents work: they may not change it, and agent diff names it first; a folder outside is safer`,
    ),
  ),
];
