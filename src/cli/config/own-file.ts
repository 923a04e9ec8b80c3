import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { childEnvironment } from '../../actors/process/run-command.ts';
import { isServiceError, type ServiceError } from '../../machines/errors.ts';
import type { CommandContext } from '../client/command-context.ts';
import { readServerFile } from '../server/server-file.ts';
import { type ConfigFlags, loadConfig } from './config.ts';
import { ConfigError } from './config-error.ts';
import { type Project, stateFiles, stateFolders } from './places/project.ts';

export const readTextIfAny = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
};

/**
 * The home folder can be no project: there your file for every project can still be changed, and the
 * machine be checked. @returns a folder that does not exist, and the reason
 */
export const projectOrNone = (
  context: CommandContext,
): { readonly project: Project; readonly refusal: ServiceError | null } => {
  try {
    return { project: context.project, refusal: null };
  } catch (error) {
    if (!isServiceError(error) || error.code !== 'project_refused') throw error;
    const none = join(stateFolders(context.env).shared, 'no-project');
    return {
      project: { root: none, stateDir: none, defaultDir: none },
      refusal: error,
    };
  }
};

/** A configuration file of the user: for this project, or for every one. */
export interface Target {
  readonly target: string;
  readonly scope: 'project' | 'everywhere';
}

/** The files that the running server reads, else those that one would which is started from here. */
export const readByServer = ({
  project,
  config,
  env,
}: Pick<CommandContext, 'project' | 'config' | 'env'>): {
  readonly config: string | undefined;
  readonly env: NodeJS.ProcessEnv;
} => {
  const named = readServerFile(stateFiles(project.stateDir).server)?.config;
  if (named === undefined || (named !== '' && !existsSync(named)))
    return { config: config ?? undefined, env };
  return { config: named || undefined, env: { ...env, AGENT_SERVER_CONFIG: '' } };
};

/** What a server of this project would say: the code is that of its start and of its reloads. */
const refusalsOf = async (
  context: CommandContext,
  draft: ConfigFlags['draft'],
): Promise<readonly string[]> => {
  const { project, env } = context;
  const [{ takeFrom }, { credentialsIn }, { storeFor }, { sandboxFor }] = await Promise.all([
    import('../server/assemble.ts'),
    import('../server/assistants.ts'),
    import('./store.ts'),
    import('./sandbox.ts'),
  ]);
  const environment = { credentials: credentialsIn(env), environment: childEnvironment(env), env };
  try {
    const read = readByServer(context);
    const loaded = loadConfig({ config: read.config, project, draft }, read.env);
    takeFrom(project, environment)(loaded);
    storeFor(loaded.config, project, env);
    if (loaded.config.sandbox.mode === 'required') sandboxFor(loaded.config, project);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
};

const withoutLine = (refusal: string): string => refusal.replace(/ \(line \d+\)$/, '');

/**
 * Asks whether a server would take the configuration with this text in place of a file. What it
 * refused before, for another reason, keeps nobody from mending it step by step. @returns that
 * @throws ConfigError
 */
export const requireAccepted = async (
  context: CommandContext,
  draft: NonNullable<ConfigFlags['draft']>,
): Promise<readonly string[]> => {
  const refusals = await refusalsOf(context, draft);
  if (refusals.length === 0) return [];
  const before = new Set((await refusalsOf(context, undefined)).map(withoutLine));
  const added = refusals.filter((one) => !before.has(withoutLine(one)));
  if (added.length > 0) throw new ConfigError(added.join('\n'));
  return refusals;
};
