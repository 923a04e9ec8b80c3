import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';

export const homeOf = (env: NodeJS.ProcessEnv): string => env['HOME'] || homedir();

/** Where the configuration and the files of a user lie, such as `~/.config/agent-task-server`. */
export const configFolderOf = (env: NodeJS.ProcessEnv): string => {
  const given = env['XDG_CONFIG_HOME'];
  const home = given?.startsWith('/') === true ? given : join(homeOf(env), '.config');
  return join(home, 'agent-task-server');
};

/** That of the environment, and that of the account, which `sudo` and services set apart. */
export const homesOf = (env: NodeJS.ProcessEnv): readonly string[] => {
  try {
    return [homeOf(env), userInfo().homedir];
  } catch {
    // A container may run with a user id that has no account.
    return [homeOf(env)];
  }
};
