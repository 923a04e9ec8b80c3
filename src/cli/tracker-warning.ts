import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Spec 1.2: the external tracker is recommended, not needed; its absence is a warning. */
export const trackerWarning = (env: NodeJS.ProcessEnv): string | null => {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.some((folder) => existsSync(join(folder, 'bd')))
    ? null
    : "warning: the task tracker 'bd' is not installed; tasks are kept in .beads/issues.jsonl";
};
