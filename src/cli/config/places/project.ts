import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { ServiceError } from '../../../machines/errors.ts';
import { UsageError } from '../../words/usage-error.ts';
import { configFolderOf, homeOf, homesOf } from './home.ts';
import { isFolder, isOwn, nearestRoot, placeProblem } from './project-root.ts';

export interface Project {
  /** Absolute, symlinks resolved. */
  readonly root: string;
  /** Outside the project, mode 0700; it may not exist yet. */
  readonly stateDir: string;
  /** The default state folder. Two servers of one project meet here, whichever folder each uses. */
  readonly defaultDir: string;
  /** Of `--token-file` or AGENT_TOKEN: commands act with it in place of the server's. */
  readonly token?: string | undefined;
}

const stateHome = (env: NodeJS.ProcessEnv): string => {
  const given = env['XDG_STATE_HOME'];
  return given?.startsWith('/') === true ? given : join(homeOf(env), '.local', 'state');
};

/** `own` is the folder of AGENT_STATE_DIR; `shared` holds the default folder of every project. */
export const stateFolders = (
  env: NodeJS.ProcessEnv,
): { readonly own: readonly string[]; readonly shared: string } => {
  const own = env['AGENT_STATE_DIR'];
  return { own: own ? [resolve(own)] : [], shared: join(stateHome(env), 'agent-task-server') };
};

/** Differs for projects whose folders have the same name. */
export const hashOfRoot = (root: string): string =>
  createHash('sha256').update(root).digest('hex').slice(0, 12);

/**
 * `--project`, else the nearest root upward, else the working folder.
 * @throws UsageError when the folder does not exist or belongs to somebody else, project_refused
 */
export const findProject = (
  given: string | undefined,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Project => {
  const homes = homesOf(env);
  const folder = given === undefined ? (nearestRoot(cwd, homes) ?? cwd) : resolve(cwd, given);
  if (!isFolder(folder))
    throw new UsageError(
      `the project folder ${folder} does not exist; name another with --project`,
    );
  const root = realpathSync(folder);
  const name = basename(root).replace(/[^A-Za-z0-9._-]/g, '_') || 'root';
  const own = env['AGENT_STATE_DIR'];
  const { shared } = stateFolders(env);
  const defaultDir = join(shared, `${name}-${hashOfRoot(root)}`);
  const stateDir = own ? resolve(cwd, own) : defaultDir;
  const problem = placeProblem(root, {
    homes,
    state: stateDir,
    allStates: shared,
    config: configFolderOf(env),
  });
  if (problem !== null) throw new ServiceError('project_refused', { ...problem });
  if (!isOwn(statSync(root)))
    throw new UsageError(
      `the project folder ${root} belongs to another user; run this as its owner, or name a folder of your own with --project`,
    );
  return { root, stateDir, defaultDir };
};

export const stateFiles = (stateDir: string) => ({
  lock: join(stateDir, 'server.lock'),
  token: join(stateDir, 'token'),
  server: join(stateDir, 'server.json'),
  owner: join(stateDir, 'project'),
  /** In the default folder; names the folder in use. */
  servedFrom: join(stateDir, 'served-from'),
  log: join(stateDir, 'server.log'),
  /** The tools of MCP servers, as they were first seen or allowed. */
  mcpTools: join(stateDir, 'mcp-tools.json'),
  /** The reports that verify commands wrote, for the gates of workflows. */
  reports: join(stateDir, 'reports'),
  /** The trees that passed the test before a merge. */
  passedTrees: join(stateDir, 'passed-trees.json'),
  /** Files that commands made under protected names in the project folder. */
  quarantine: join(stateDir, 'quarantine'),
  /** Copies of the system's settings that commands see. */
  etc: join(stateDir, 'etc'),
  /** Copies of home folders of assistants. */
  homes: join(stateDir, 'homes'),
  /** The content of the project folder before the command that runs there. */
  commands: join(stateDir, 'commands'),
  /** The beginning of the names of files that belong to tables on another machine. */
  exchange: join(stateDir, 'tasks'),
  /** The projects that were told that bd is not installed. */
  noted: join(stateDir, 'bd-noted'),
  limitsNoted: join(stateDir, 'limits-noted'),
  choiceNoted: join(stateDir, 'choice-noted'),
});

export const readTrimmedOrNull = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8').trimEnd();
  } catch {
    return null;
  }
};

/**
 * `AGENT_STATE_DIR` may send several projects to one folder. The first has the usual names there,
 * each other one its own, so that tasks do not mix.
 */
export const taskFiles = ({
  root,
  stateDir,
}: Project): { readonly journal: string; readonly worktrees: string } => {
  const owner = readTrimmedOrNull(stateFiles(stateDir).owner);
  const suffix = owner === null || owner === root ? '' : `-${hashOfRoot(root)}`;
  return {
    journal: join(stateDir, `journal${suffix}.db`),
    worktrees: join(stateDir, `worktrees${suffix}`),
  };
};

/** @throws UsageError when the state folder belongs to the server of another project */
export const requireOwnServer = (
  { root, stateDir }: Project,
  server: { readonly project?: string },
): void => {
  if (server.project === undefined || server.project === root) return;
  throw new UsageError(
    `the state folder ${stateDir} is in use by the server of ${server.project}; stop that one first, or set AGENT_STATE_DIR to another folder for ${root}`,
  );
};

/**
 * The same at each start: kept in the state folder, whose lock this server holds. It is random: two
 * machines from one image have the same host name and path. A folder with worktrees of an earlier version
 * keeps the name under which the store knows them.
 */
export const serverNameOf = (project: Project): string => {
  const { stateDir } = project;
  const file = join(stateDir, 'server-name');
  const kept = readTrimmedOrNull(file);
  if (kept !== null && kept !== '') return kept;
  const earlier = existsSync(taskFiles(project).worktrees);
  const id = earlier ? hashOfRoot(stateDir).slice(0, 6) : randomBytes(5).toString('hex');
  const name = `${hostname().replaceAll(/[^\w.-]/g, '-')}-${id}`;
  try {
    writeFileSync(file, `${name}\n`, { flag: 'wx', mode: 0o600 });
    return name;
  } catch {
    // Another process was first, or nothing can be written there.
    return readTrimmedOrNull(file) ?? name;
  }
};
