import { execaSync } from 'execa';

const get = (projectRoot: string, scope: '--global' | '--local', key: string): string => {
  const args = ['config', scope, '--get', key];
  const { stdout } = execaSync('git', args, { cwd: projectRoot, reject: false, timeout: 5_000 });
  return String(stdout ?? '').trim();
};

/**
 * Who commits, for commands that do not see the user's home: the user's own name and address as git's variables, unless
 * the repository names somebody, whom the variables would override.
 */
export const gitIdentity = (projectRoot: string): Readonly<Record<string, string>> => {
  const own = (key: string): string =>
    get(projectRoot, '--local', key) === '' ? get(projectRoot, '--global', key) : '';
  const [name, email] = [own('user.name'), own('user.email')];
  return {
    ...(name === '' ? {} : { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name }),
    ...(email === '' ? {} : { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email }),
  };
};
