import { join } from 'node:path';
import { findBdData } from '../../actors/ledger/ownership.ts';
import { programOnPath } from '../../actors/tracker/bd/program.ts';

/** The external tracker is recommended, not required; without it, a warning. */
export const trackerWarning = (env: NodeJS.ProcessEnv, projectRoot: string): string | null => {
  if (programOnPath('bd', env) !== null) return null;
  const sign = findBdData(join(projectRoot, '.beads'));
  return sign === undefined
    ? "warning: the task tracker 'bd' is not installed; tasks are kept in .beads/issues.jsonl"
    : `warning: the task tracker 'bd' is not installed, and this project keeps its tasks in it (.beads/${sign})`;
};
