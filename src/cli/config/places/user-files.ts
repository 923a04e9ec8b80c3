import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { configFolderOf } from './home.ts';
import type { Project } from './project.ts';

export interface UserFiles {
  readonly everywhere: string;
  /** For one project; it wins. */
  readonly project: string;
}

/** The user's own configuration, outside every project. */
export const userFilesOf = (
  { defaultDir }: Pick<Project, 'defaultDir'>,
  env: NodeJS.ProcessEnv,
): UserFiles => {
  const folder = configFolderOf(env);
  return {
    everywhere: join(folder, 'config.json'),
    project: join(folder, 'projects', `${basename(defaultDir)}.json`),
  };
};

/** Those that exist, or are about to; later ones win. */
export const existingUserFiles = (
  project: Pick<Project, 'defaultDir'>,
  env: NodeJS.ProcessEnv,
  draft?: string,
): readonly string[] => {
  const { everywhere, project: own } = userFilesOf(project, env);
  return [everywhere, own].filter((file) => file === draft || existsSync(file));
};
