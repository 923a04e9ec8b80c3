import { join } from 'node:path';
import { execaSync } from 'execa';
import { readRegular } from '../files/regular-file.ts';

/** Of one file of settings, as data: git enters no repository, and includes nothing that a repository names. */
const get = (from: readonly string[], key: string, input = ''): string => {
  const options = { input, cwd: '/', env: { GIT_DIR: '/nonexistent' }, reject: false, timeout: 5_000 };
  return String(execaSync('git', ['config', ...from, '--get', key], options).stdout ?? '').trim();
};

const configAtMost = 1024 * 1024;

/** Empty for what is no plain file, such as a pipe, which would be waited for. */
const configOf = (projectRoot: string): string => {
  try {
    return readRegular(join(projectRoot, '.git', 'config'), configAtMost);
  } catch {
    return '';
  }
};

/**
 * The user's name and address as git's variables, for commands that do not see the user's home, unless
 * the repository names somebody, whom the variables would override.
 */
export const gitIdentity = (projectRoot: string): Readonly<Record<string, string>> => {
  const config = configOf(projectRoot);
  const local = ['--file', '-', '--no-includes'];
  const own = (key: string): string => (get(local, key, config) === '' ? get(['--global'], key) : '');
  const [name, email] = [own('user.name'), own('user.email')];
  return {
    ...(name === '' ? {} : { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name }),
    ...(email === '' ? {} : { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email }),
  };
};
