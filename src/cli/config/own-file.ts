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

export const reloadNote =
  'note: a server that runs reads it when it starts again: agent server restart';
