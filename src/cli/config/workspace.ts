import { createForgetWork } from '../../actors/engine/servers/held-folders.ts';
import { childEnvironment } from '../../actors/process/run-command.ts';
import type { Sandbox } from '../../actors/sandbox/port.ts';
import type { ActorReads } from '../../actors/store/port.ts';
import { findGit } from '../../actors/workspace/git/git.ts';
import type { Workspace } from '../../actors/workspace/port.ts';
import {
  createFinishedWork,
  type FinishedWork,
} from '../../actors/workspace/worktrees/finished-work.ts';
import { chooseWorkspace } from '../../actors/workspace/worktrees/select-workspace.ts';
import type { LoadedConfig } from './config.ts';
import { type Project, serverNameOf, taskFiles } from './places/project.ts';
import type { Config } from './schema/config-schema.ts';
import type { StoreChoice } from './store.ts';
import { pathsOf, requireTrustedOutside } from './trusted-places.ts';

interface ServerWorkspace {
  readonly sandbox?: Sandbox;
  /** Absolute paths that agents may not change; by default those of the configuration. */
  readonly trusted?: () => readonly string[];
  readonly redact?: (text: string) => string;
}

/** @throws ConfigError */
export const workspaceFor = (
  loaded: LoadedConfig,
  project: Project,
  env: NodeJS.ProcessEnv,
  { sandbox: held, trusted, redact }: ServerWorkspace = {},
): Promise<Workspace> => {
  const { workspace, sandbox } = loaded.config;
  const places = trusted === undefined ? pathsOf(requireTrustedOutside(loaded, project, env)) : [];
  return chooseWorkspace({
    trusted: trusted ?? (() => places),
    mode: workspace.mode,
    projectRoot: project.root,
    folder: taskFiles(project).worktrees,
    copies: workspace.copy,
    filters: workspace.filters,
    keep: workspace.keep,
    sandboxed: sandbox.mode !== 'off',
    sandbox: held?.check,
    environment: childEnvironment(env),
    userEnv: env,
    redact,
    ...(workspace.repository === null
      ? {}
      : { repository: { address: workspace.repository, server: serverNameOf(project), env } }),
  });
};

/** What earlier attempts left, in whichever mode they worked, also for other servers. */
export const finishedWorkFor = (
  config: Config,
  project: Project,
  env: NodeJS.ProcessEnv,
  { travel }: Workspace,
  store: Pick<ActorReads, 'steps'>,
): FinishedWork =>
  createFinishedWork(
    {
      program: findGit(env['PATH'] ?? '') ?? '/usr/bin/git',
      projectRoot: project.root,
      folder: taskFiles(project).worktrees,
      copies: [],
      keep: [],
      filters: config.workspace.filters,
      sandboxed: config.sandbox.mode !== 'off',
      description: '',
      common: null,
    },
    createForgetWork(travel, store),
  );

interface RepositoryCheck {
  readonly status: 'ok' | 'note' | 'problem';
  readonly detail: string;
}

/** Asks the repository that all servers reach; null: none is configured. */
export const checkRepository = async (
  { workspace: { repository } }: Config,
  { travel }: Workspace,
  { kind }: StoreChoice,
): Promise<RepositoryCheck | null> => {
  if (repository === null) return null;
  const unused = (why: string): RepositoryCheck => ({
    status: 'note',
    detail: `${repository} is not used: ${why}`,
  });
  if (travel === null) return unused('with workspace.mode shared there is no work to send');
  if (kind === 'sqlite') return unused('this server shares no store (store.url)');
  const problem = await travel.check();
  return problem === null
    ? { status: 'ok', detail: `${repository} can be read and written` }
    : {
        status: 'problem',
        detail: `${problem}; until then the work of agents does not go to other servers (workspace.repository)`,
      };
};
