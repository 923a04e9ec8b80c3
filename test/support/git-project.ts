import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { openProject } from './cli.ts';
import { gitIn } from './git.ts';
import { temporaryFolder } from './temporary.ts';

/** A project in git, with one commit of `a.txt`, whose agents play these scripts. */
export const openGitProject = (
  scripts: readonly object[],
  workspace: object = {},
  options: Parameters<typeof openProject>[1] = {},
) => {
  const script = join(temporaryFolder(), 'script.json');
  writeFileSync(script, JSON.stringify({ scripts }));
  const project = openProject({ api: { backend: 'scripted', script }, workspace }, options);
  rmSync(join(project.root, '.git'), { recursive: true });
  cpSync(inject('repository'), project.root, { recursive: true, preserveTimestamps: true });
  gitIn(project.root, 'update-index', '-q', '--refresh');
  return project;
};
