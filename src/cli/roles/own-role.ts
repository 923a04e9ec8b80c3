import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Role } from '../../machines/task.ts';
import { configFolder, type LoadedConfig } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { parseRole } from './parse-role.ts';
import { type RoleKeys, userRole } from './role-schema.ts';

export interface OwnParts extends RoleKeys {
  readonly description?: string | undefined;
  readonly prompt?: string | undefined;
}

const ownFileMaxBytes = 256 * 1024;

const readOwnFile = (path: string, key: string): Buffer => {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw new ConfigError(`${key}: ${path} cannot be read`, { cause });
  }
  if (bytes.length > ownFileMaxBytes)
    throw new ConfigError(`${key}: ${path} has more than ${ownFileMaxBytes} bytes`);
  return bytes;
};

const promptFrom = (folder: string, file: string, key: string): string =>
  readOwnFile(resolve(folder, file), `${key}.prompt_file`).toString('utf8');

const fileFrom = (
  folder: string,
  file: string,
  role: Role,
): { readonly path: string; readonly parts: OwnParts } => {
  const key = `roles.${role}.file`;
  const path = resolve(folder, file);
  const parsed = parseRole(readOwnFile(path, key), role, userRole);
  if (!parsed.ok) throw new ConfigError(`${path}: ${parsed.text}`);
  const { limits, name: _, prompt_file, ...parts } = parsed.value;
  const prompt =
    prompt_file === undefined ? {} : { prompt: promptFrom(dirname(path), prompt_file, path) };
  return { path, parts: { ...parts, ...limits, ...prompt } };
};

/**
 * The user's role file, overridden by the keys in the configuration. @throws ConfigError naming
 * file and key
 */
export const ownRole = (
  loaded: LoadedConfig,
  role: Role,
): { readonly parts: OwnParts; readonly file: string | null } => {
  const { file, prompt_file, ...keys } = loaded.config.roles[role] ?? {};
  const folder = configFolder(loaded);
  const prompt =
    prompt_file === undefined ? {} : { prompt: promptFrom(folder, prompt_file, `roles.${role}`) };
  const fromFile = file === undefined ? { path: null, parts: {} } : fileFrom(folder, file, role);
  return { parts: { ...fromFile.parts, ...keys, ...prompt }, file: fromFile.path };
};
