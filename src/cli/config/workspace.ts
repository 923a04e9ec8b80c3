import { childEnvironment } from '../../actors/process/run-command.ts';
import type { Sandbox } from '../../actors/sandbox/port.ts';
import type { Workspace } from '../../actors/workspace/port.ts';
import { chooseWorkspace } from '../../actors/workspace/select-workspace.ts';
import type { Config } from './config-schema.ts';
import { type Project, taskFiles } from './project.ts';

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
  });
