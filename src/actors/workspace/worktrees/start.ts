import type { StartConflict } from '../../../machines/agent/agent-context.ts';
import { messageOf } from '../../../machines/message-of.ts';
import type { TaskId } from '../../../machines/task.ts';
import { textOf } from '../folders/names.ts';
import { changesBetween, commitTree, contains, mergeTrees, noFile } from '../git/commits.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { obeyedIn } from '../git/obeyed-places.ts';
import { mergeBase, type WorkRecord, type WorkRecords } from '../git/work-records.ts';
import { repositoryMade, type Stopped, stop } from '../merging/obstacles.ts';
import type { IndexChange } from '../saving/snapshot-job.ts';
import type { RepositoryAtHead } from './stores.ts';
import { findUnmerged, tipOfWork } from './unmerged.ts';

export interface Start {
  readonly commit: string;
  readonly notes: readonly string[];
  readonly conflicts: readonly StartConflict[];
  /** The work that the commit has and the project's branch does not. */
  readonly includes: WorkRecord['includes'];
}

type CommittedWork = WorkRecord & { readonly commit: string };

const included = ({
  task_id,
  attempt,
  commit,
  includes,
}: CommittedWork): WorkRecord['includes'] => [...includes, { task_id, attempt, commit }];

const mergeIntoStart = async (
  dirs: GitDirs,
  records: WorkRecords,
  commit: string,
  work: CommittedWork,
  signal: AbortSignal | undefined,
): Promise<string | Stopped> => {
  if (await contains(dirs, work.commit, commit)) return work.commit;
  // Else the work that it began with comes with it.
  const hasLanded = (await findUnmerged(dirs, records, work, [])) === null;
  const base = hasLanded ? mergeBase(work) : null;
  const merged = await mergeTrees(dirs, commit, work.commit, signal, base).catch((error: unknown) =>
    stop(messageOf(error)),
  );
  if ('why' in merged) return merged;
  if (merged.conflicts !== undefined) return stop(merged.conflicts.join(', '), merged.conflicts);
  const message = `Merge the work of ${work.task_id}`;
  const parents = [commit, work.commit];
  return commitTree(dirs, { tree: merged.tree, parents, message, role: work.role }, signal);
};

const addWork = async (
  { dirs, head }: RepositoryAtHead,
  records: WorkRecords,
  commit: string,
  work: CommittedWork,
  signal: AbortSignal | undefined,
): Promise<string | Stopped> => {
  const target = await mergeIntoStart(dirs, records, commit, work, signal);
  if (typeof target !== 'string') return target;
  const changes = await changesBetween(dirs, head, target, signal);
  return (await repositoryMade(dirs, { head, target }, changes)) ?? target;
};

/** A task that changed nothing passes on the work that it began with. */
const withPassedOn = async (
  records: WorkRecords,
  after: readonly TaskId[],
): Promise<readonly TaskId[]> => {
  const found = new Set<TaskId>();
  for (const taskId of after) {
    const record = await records.latest(taskId);
    if (record?.complete === true && (record.commit === null || record.discarded !== null))
      for (const { task_id } of record.includes) found.add(task_id as TaskId);
    found.add(taskId);
  }
  return [...found];
};

export const startOf = async (
  atHead: RepositoryAtHead,
  records: WorkRecords,
  after: readonly TaskId[],
  signal: AbortSignal | undefined,
): Promise<Start> => {
  const { dirs, head } = atHead;
  let commit = head;
  const notes: string[] = [];
  const conflicts: StartConflict[] = [];
  const includes: WorkRecord['includes'] = [];
  for (const taskId of await withPassedOn(records, after)) {
    const record = await records.latest(taskId);
    if (record?.commit == null || record.kind !== dirs.repository.kind) continue;
    const { branch } = record;
    const saved = { ...record, commit: record.commit };
    const work = { ...saved, commit: (await tipOfWork(dirs, records, saved)) ?? saved.commit };
    if (await contains(dirs, commit, record.merged ?? work.commit)) continue;
    if (record.discarded !== null) {
      notes.push(`The work of ${taskId} was discarded and is not in your folder.`);
      continue;
    }
    if (!record.complete) {
      notes.push(
        `The work of ${taskId} on the branch ${branch} is not complete and is not in your folder.`,
      );
      continue;
    }
    const added = await addWork(atHead, records, commit, work, signal);
    if (typeof added !== 'string') {
      notes.push(
        `The work of ${taskId} is on the branch ${branch} and could not be merged into your folder: ${added.why}.`,
      );
      conflicts.push({ taskId, branch, files: added.files });
      continue;
    }
    commit = added;
    includes.push(...included(work));
    notes.push(
      `Your folder has the work of ${taskId} (branch ${branch}), which is not in the project's branch yet.`,
    );
  }
  return { commit, notes, conflicts, includes };
};

export interface Withheld {
  /** The paths as the user's own branch has them: the folder begins with these. */
  readonly instead: readonly IndexChange[];
  /** The same paths as the start commit has them. */
  readonly withheld: readonly IndexChange[];
}

/**
 * Changes to protected paths that no person has merged. Earlier work may have made them, so no
 * folder gets them.
 */
export const findWithheld = async (
  { dirs, head }: RepositoryAtHead,
  start: string,
): Promise<Withheld> => {
  if (start === head) return { instead: [], withheld: [] };
  const isObeyed = await obeyedIn(dirs, head);
  const changes = (await changesBetween(dirs, head, start)).filter(({ path }) =>
    isObeyed(textOf(path)),
  );
  const side = (path: string, mode: string, oid: string): IndexChange => ({
    path,
    to: mode === noFile ? null : { mode, oid },
  });
  return {
    instead: changes.map(({ path, from, fromOid }) => side(path, from, fromOid)),
    withheld: changes.map(({ path, to, oid }) => side(path, to, oid)),
  };
};
