import { join } from 'node:path';
import { execaSync } from 'execa';
import { readRegular } from '../../files/regular-file.ts';

/**
 * Reads one configuration file as data: git enters no repository and follows no include that a
 * repository names.
 */
const getSetting = (from: readonly string[], key: string, input = ''): string => {
  const options = {
    input,
    cwd: '/',
    env: { GIT_DIR: '/nonexistent' },
    reject: false,
    timeout: 5_000,
  };
  return String(execaSync('git', ['config', ...from, '--get', key], options).stdout ?? '').trim();
};

const configAtMost = 1024 * 1024;

/** Empty for anything but a plain file: reading a pipe would block. */
const configOf = (projectRoot: string): string => {
  try {
    return readRegular(join(projectRoot, '.git', 'config'), configAtMost);
  } catch {
    return '';
  }
};

/**
 * The user's name and address as git variables, for commands that do not see the user's home. Empty
 * when the repository sets a name, since the variables would override it.
 */
export const gitIdentity = (projectRoot: string): Readonly<Record<string, string>> => {
  const config = configOf(projectRoot);
  const local = ['--file', '-', '--no-includes'];
  const own = (key: string): string =>
    getSetting(local, key, config) === '' ? getSetting(['--global'], key) : '';
  const [name, email] = [own('user.name'), own('user.email')];
  return {
    ...(name === '' ? {} : { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name }),
    ...(email === '' ? {} : { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email }),
  };
};
