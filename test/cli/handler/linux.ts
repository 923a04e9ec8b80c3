import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { HandlerEnvironment } from '../../../src/cli/handler/registration.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** A user with a desktop, with all files in one temporary folder. */
export const linuxUser = () => {
  const home = temporaryFolder();
  const env = {
    HOME: home,
    DISPLAY: ':0',
    XDG_DATA_HOME: join(home, 'data'),
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_DATA_DIRS: join(home, 'system-data'),
    XDG_CONFIG_DIRS: join(home, 'system-config'),
  };
  const environment: HandlerEnvironment = {
    platform: 'linux',
    env,
    home,
    node: process.execPath,
    script: '/opt/agent/agent.js',
    uid: 1000,
    run: () => Promise.reject(new Error('Linux runs no programs')),
  };
  const put = (path: string, text: string | Buffer): void => {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  };
  const text = (path: string): string | null =>
    existsSync(join(home, path)) ? readFileSync(join(home, path), 'utf8') : null;
  return { home, env, environment, put, text };
};

export const entryPath = 'data/applications/agent-task-server.desktop';
export const listPath = 'config/mimeapps.list';
