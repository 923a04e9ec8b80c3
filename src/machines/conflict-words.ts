import { someOf } from './plural.ts';

/** Unmerged work of another task, and the files that both changed in a way that git cannot merge. */
export interface WorkConflict {
  readonly task_id: string;
  readonly paths: readonly string[];
}

/** `will conflict with bd-7 in src/a.js` */
export const conflictWords = (conflicts: readonly WorkConflict[]): string =>
  `will conflict ${conflicts.map(({ task_id, paths }) => `with ${task_id} in ${someOf(paths, 3)}`).join(' and ')}`;
