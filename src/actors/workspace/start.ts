import type { StartConflict } from '../../machines/agent-context.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { TaskId } from '../../machines/task.ts';
import { protectionOf } from '../sandbox/protected-paths.ts';
import { changesBetween, combine, commitTree, contains } from './commits.ts';
import { textOf } from './names.ts';
import type { Change } from './snapshot-job.ts';
import type { Begun } from './stores.ts';
import type { WorkRecord, WorkRecords } from './work-records.ts';

export interface Start {
  readonly commit: string;
  readonly notes: readonly string[];
  readonly conflicts: readonly StartConflict[];
  /** The work that the commit has and the project's branch does not. */
  readonly includes: WorkRecord['includes'];
}

const included = ({ task_id, attempt, commit, includes }: WorkRecord): WorkRecord['includes'] => [
  ...includes,
  ...(commit === null ? [] : [{ task_id, attempt, commit }]),
];

/** The project's commit with the complete work of earlier tasks that it does not have yet. */
export const startOf = async (
  { dirs, head }: Begun,
  records: WorkRecords,
  after: readonly TaskId[],
  signal: AbortSignal | undefined,
): Promise<Start> => {
  let commit = head;
  const notes: string[] = [];
  const conflicts: StartConflict[] = [];
  const includes: WorkRecord['includes'] = [];
  for (const taskId of after) {
    const record = await records.latest(taskId);
    if (record?.commit == null || record.kind !== dirs.repository.kind) continue;
    const { branch } = record;
    if (await contains(dirs, commit, record.merged ?? record.commit)) continue;
    if (!record.complete) {
      notes.push(`The work of ${taskId} on the branch ${branch} is not complete and is not in your folder.`);
      continue;
    }
    const has = `Your folder has the work of ${taskId} (branch ${branch}), which is not in the project's branch yet.`;
    if (await contains(dirs, record.commit, commit)) {
      commit = record.commit;
      includes.push(...included(record));
      notes.push(has);
      continue;
    }
    const merged = await combine(dirs, commit, record.commit, signal).catch((error: unknown) => ({
      conflicts: [],
      why: messageOf(error),
    }));
    if ('conflicts' in merged) {
      const why = 'why' in merged ? merged.why : merged.conflicts.join(', ');
      notes.push(`The work of ${taskId} is on the branch ${branch} and could not be put into your folder: ${why}.`);
      conflicts.push({ taskId, branch, files: merged.conflicts });
      continue;
    }
    const message = `Merge the work of ${taskId}`;
    const parents = [commit, record.commit];
    commit = await commitTree(dirs, { tree: merged.tree, parents, message, role: record.role }, signal);
    includes.push(...included(record));
    notes.push(has);
  }
  return { commit, notes, conflicts, includes };
};

export interface Withheld {
  /** What the folder begins with instead: as the user's own branch has it. */
  readonly instead: readonly Change[];
  /** What the start has. */
  readonly withheld: readonly Change[];
}

const none = '000000';

/**
 * What other programs would run or trust, and no person merged yet: earlier work may have written it, so it is in
 * nobody's folder.
 */
export const findWithheld = async ({ dirs, head }: Begun, start: string): Promise<Withheld> => {
  if (start === head) return { instead: [], withheld: [] };
  const changes = (await changesBetween(dirs, head, start)).filter(({ path }) => protectionOf(textOf(path)) !== null);
  const side = (path: string, mode: string, oid: string): Change => ({
    path,
    to: mode === none ? null : { mode, oid },
  });
  return {
    instead: changes.map(({ path, from, fromOid }) => side(path, from, fromOid)),
    withheld: changes.map(({ path, to, oid }) => side(path, to, oid)),
  };
};
