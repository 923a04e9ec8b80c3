import { realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { relativeInside } from '../../files/link-places.ts';
import { type GitSettings, readGitSettings } from './repository-config.ts';

const userFiles = (): readonly string[] => [
  join(process.env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'git/config'),
  join(homedir(), '.gitconfig'),
];

const readUsers = async (program: string, file: string): Promise<GitSettings> => {
  try {
    return await readGitSettings(program, await realpath(file));
  } catch {
    return new Map();
  }
};

/**
 * Finds the folders in the working tree whose files git runs as hooks (`core.hooksPath`): as
 * written, and with its links resolved. Included settings files are not read.
 */
export const hookFolders = async (
  program: string,
  top: string,
  settings: GitSettings,
): Promise<readonly string[]> => {
  const users = await Promise.all(userFiles().map((file) => readUsers(program, file)));
  const named = [...users, settings].flatMap((each) => each.get('core.hookspath') ?? []).at(-1);
  if (named === undefined || named === '') return [];
  const folder = resolve(top, named.replace(/^~(?=\/)/, homedir()));
  const real = await realpath(folder).catch(() => folder);
  return [...new Set([folder, real].flatMap((each) => relativeInside(top, each) ?? []))];
};

/**
 * True when a change of this path can change a hook: the path is in the folder, or is a link on the
 * way to it.
 */
export const isHook = (folders: readonly string[], path: string): boolean => {
  const name = path.toLowerCase();
  return folders.some((each) => {
    const folder = each.toLowerCase();
    if (folder === '') return !name.includes('/');
    return name === folder || name.startsWith(`${folder}/`) || folder.startsWith(`${name}/`);
  });
};
