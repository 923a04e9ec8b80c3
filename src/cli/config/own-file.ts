import { readFileSync } from 'node:fs';
import { loadConfig } from './config.ts';
import { ConfigError } from './config-error.ts';

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
