import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Role } from '../../machines/task.ts';
import { configFolder, type LoadedConfig } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { heldByPolicies } from '../config/policy.ts';
import { parseRole } from './parse-role.ts';
import { type RoleKeys, userRole } from './role-schema.ts';

export interface OwnParts extends RoleKeys {
  readonly description?: string;
  readonly prompt?: string;
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

interface OwnFile {
  readonly key: string;
  readonly path: string;
}

interface Prompt {
  readonly text: string;
  readonly file: OwnFile;
}

const promptFrom = (folder: string, file: string, of: string): Prompt => {
  const [path, key] = [resolve(folder, file), `${of}.prompt_file`];
  return { text: readOwnFile(path, key).toString('utf8'), file: { key, path } };
};

const partOf = (prompt: Prompt | null | undefined): Pick<OwnParts, 'prompt'> =>
  prompt == null ? {} : { prompt: prompt.text };

const fileFrom = (folder: string, file: string, role: Role) => {
  const key = `roles.${role}.file`;
  const path = resolve(folder, file);
  const parsed = parseRole(readOwnFile(path, key), role, userRole);
  if (!parsed.ok) throw new ConfigError(`${path}: ${parsed.text}`);
  const { limits, name: _, prompt_file, ...parts } = parsed.value;
  const prompt = prompt_file === undefined ? null : promptFrom(dirname(path), prompt_file, path);
  return { own: { key, path }, prompt, parts: { ...parts, ...limits } };
};

const readOwnRole = (loaded: LoadedConfig, role: Role) => {
  const { file, prompt_file, ...keys } = loaded.config.roles[role] ?? {};
  const folder = configFolder(loaded);
  return {
    keys,
    prompt: prompt_file === undefined ? null : promptFrom(folder, prompt_file, `roles.${role}`),
    fromFile: file === undefined ? null : fileFrom(folder, file, role),
  };
};

/**
 * The user's role file, overridden by the keys in the configuration. @throws ConfigError naming
 * file and key
 */
export const ownRole = (
  loaded: LoadedConfig,
  role: Role,
): { readonly parts: OwnParts; readonly file: string | null } => {
  const { keys, prompt, fromFile } = readOwnRole(loaded, role);
  return {
    parts: {
      ...heldByPolicies({ ...fromFile?.parts }, loaded),
      ...partOf(fromFile?.prompt),
      ...keys,
      ...partOf(prompt),
    },
    file: fromFile?.own.path ?? null,
  };
};

/** The files that say what a role does. @throws as `ownRole` */
export const ownRoleFiles = (loaded: LoadedConfig, role: Role): readonly OwnFile[] => {
  const { prompt, fromFile } = readOwnRole(loaded, role);
  return [prompt?.file, fromFile?.own, fromFile?.prompt?.file].filter((file) => file != null);
};
