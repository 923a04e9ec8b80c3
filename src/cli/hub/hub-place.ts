import { dirname, join } from 'node:path';
import { hashOfRoot, type Project, stateFolders } from '../config/places/project.ts';

/** Of this person, outside every project; mode 0700. */
export const hubFolderOf = (env: NodeJS.ProcessEnv): string =>
  join(stateFolders(env).shared, 'hub');

/** Beside the default state folders, so that each server finds it, whichever folder it uses. */
export const hubFolderFor = ({ defaultDir }: Pick<Project, 'defaultDir'>): string =>
  join(dirname(defaultDir), 'hub');

export const hubFiles = (folder: string) => ({
  lock: join(folder, 'hub.lock'),
  /** For the commands of this person; nobody else reaches it. */
  socket: join(folder, 'hub.sock'),
  logins: join(folder, 'logins.json'),
  port: join(folder, 'port.json'),
  log: join(folder, 'hub.log'),
  projects: join(folder, 'projects'),
});

/**
 * Where the server of a project listens for the hub. No other user can take it while the server is
 * down, as they could its port.
 */
export const serverSocketFor = (project: Pick<Project, 'root' | 'defaultDir'>): string =>
  join(hubFolderFor(project), `${hashOfRoot(project.root)}.sock`);
