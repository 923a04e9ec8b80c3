import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ServerFile } from '../server/server-file.ts';

/** A file may be named in several ways. */
const resolvedPath = (file: string): string => {
  try {
    return realpathSync(file);
  } catch {
    return resolve(file);
  }
};

export interface NamedConfig {
  readonly source: '--config' | 'AGENT_SERVER_CONFIG';
  readonly file: string;
}

/** Warns that the running server uses another configuration; null if not. */
export const configNote = (
  { config: used }: Pick<ServerFile, 'config'>,
  { source, file }: NamedConfig,
): string | null => {
  if (used === undefined || (used !== '' && resolvedPath(used) === resolvedPath(file))) return null;
  const started = used === '' ? 'without one' : `with ${used}`;
  const flag = source === '--config' ? ` --config ${file}` : '';
  return `note: ${source} ${file} does not count: a server runs already, which was started ${started}; to change that: agent server restart${flag}`;
};
