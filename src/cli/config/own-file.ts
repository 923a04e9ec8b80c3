import { readFileSync } from 'node:fs';
import { isAlive } from '../../actors/process/pid.ts';
import type { CommandContext } from '../client/command-context.ts';
import { readServerFile } from '../server/server-file.ts';
import { loadConfig } from './config.ts';
import { ConfigError } from './config-error.ts';
import { stateFiles } from './project.ts';

export const readTextIfAny = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
};

/** @throws ConfigError, which names `target` */
export const requireValid = (candidate: string, target: string): void => {
  try {
    loadConfig({ config: candidate }, {});
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(error.message.replaceAll(candidate, target), { cause: error });
  }
};

/** A configuration file of the user: for this project, or for every one. */
export interface Target {
  readonly target: string;
  readonly scope: 'project' | 'everywhere';
}

/** A server reads its files when it starts. Of other projects' servers nothing is known. */
export const noteReload = ({ io, project }: CommandContext, scope: Target['scope']): void => {
  const server = readServerFile(stateFiles(project.stateDir).server);
  const runs = server !== null && isAlive(server.pid);
  if (runs)
    io.err('note: the server that runs reads it when it starts again: agent server restart');
  else if (scope === 'everywhere')
    io.err('note: servers of other projects read it when they start again');
};
