import { createForgetWork } from '../../actors/engine/folder-holders.ts';
import { childEnvironment } from '../../actors/process/run-command.ts';
import type { Sandbox } from '../../actors/sandbox/port.ts';
import type { ActorReads } from '../../actors/store/port.ts';
import { createFinishedWork, type FinishedWork } from '../../actors/workspace/finished-work.ts';
import { findGit } from '../../actors/workspace/git.ts';
import type { Workspace } from '../../actors/workspace/port.ts';
import { chooseWorkspace } from '../../actors/workspace/select-workspace.ts';
import type { Config } from './config-schema.ts';
import { type Project, serverNameOf, taskFiles } from './project.ts';

export const workspaceFor = (
  { workspace, sandbox }: Config,
  project: Project,
  env: NodeJS.ProcessEnv,
  held?: Sandbox,
): Promise<Workspace> =>
  chooseWorkspace({
    mode: workspace.mode,
    projectRoot: project.root,
    folder: taskFiles(project).worktrees,
    copies: workspace.copy,
    filters: workspace.filters,
    sandboxed: sandbox.mode !== 'off',
    ...(held === undefined ? {} : { sandbox: held.check }),
    environment: childEnvironment(env),
    ...(workspace.repository === null
      ? {}
      : { repository: { address: workspace.repository, server: serverNameOf(project), env } }),
  });

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
      filters: config.workspace.filters,
      sandboxed: config.sandbox.mode !== 'off',
      description: '',
      common: null,
    },
    createForgetWork(travel, store),
  );
