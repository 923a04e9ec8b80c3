import { messageOf } from '../../../machines/message-of.ts';
import { commitOf, commitTree, findObjects, moveBranch } from '../git/commits.ts';
import { GitError } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { isPresent } from '../git/plain.ts';
import { keptCommit, type WorkRecord } from '../git/work-records.ts';
import type { NamedAttempt, SavedWork } from '../port.ts';
import { type KeptRefs, keepAgentRefs } from '../saving/keep-refs.ts';
import { snapshotJob } from '../saving/snapshot-job.ts';
import { snapshotInThread } from '../saving/snapshots.ts';
import { workOf } from './changes.ts';
import { treeOfWork } from './verified-work.ts';
import type { WorkParts } from './work-parts.ts';

const mostTries = 5;
const objectIsGone =
  /invalid object|nonexistent object|not a valid object|bad object|missing|unable to read|could not read/i;

const createFolderCommit = ({ options, branches, placesOf }: WorkParts) => {
  return async (dirs: GitDirs, record: WorkRecord, title: string) => {
    const places = placesOf(record.task_id, record.attempt);
    const job = await snapshotJob(dirs, record, places, options);
    const keep = {
      patterns: options.keep,
      projectRoot: options.projectRoot,
      place: `.beads/tasks/task-${record.task_id}/files/${record.attempt}`,
    };
    const { tree: found, notes, left } = await snapshotInThread({ ...job, keep });
    const tree = await treeOfWork(dirs, record, found);
    const unchanged = { tip: null, branch: record.branch, notes, left };
    if (tree === null) return unchanged;
    const { task_id, attempt, role, base } = record;
    const ref = `refs/heads/${record.branch}`;
    const [baseTree, tip, tipTree] = await findObjects(dirs, [
      `${base}^{tree}`,
      `${ref}^{commit}`,
      `${ref}^{tree}`,
    ]);
    if (tree === baseTree) return unchanged;
    // Saved before, and interrupted before the record was written.
    if (tip !== base && tree === tipTree) return { tip, branch: record.branch, notes, left };
    const message = `${title}\n\nTask: ${task_id}\nAttempt: ${attempt}\nRole: ${role}\n`;
    const parents = record.resolves?.parents ?? [base];
    const commit = await commitTree(dirs, { tree, parents, message, role });
    const branch = await branches.move(dirs, record, commit);
    return { tip: commit, branch, notes, left };
  };
};

/**
 * Like `commitFolder`, and reads back what was saved. The user may prune objects at the same
 * moment (`git gc --prune=now`): then they are made again, while the folder is still there.
 */
const createSoundCommit = (parts: WorkParts) => {
  const commitFolder = createFolderCommit(parts);
  return async (dirs: GitDirs, record: WorkRecord, title: string) => {
    for (let tries = 1; ; tries += 1) {
      let kept: Awaited<ReturnType<typeof commitFolder>> | null = null;
      try {
        // What was noted around a verification may be gone, too; the folder has everything.
        const again = { ...record, verified: null };
        kept = await commitFolder(dirs, tries === 1 ? record : again, title);
        const commit = keptCommit(record, kept.tip);
        const saved = { ...record, branch: kept.branch, notes: [...kept.notes], commit };
        return { ...kept, work: await workOf(dirs, saved) };
      } catch (error) {
        if (
          tries === mostTries ||
          !(error instanceof GitError) ||
          !objectIsGone.test(error.message)
        )
          throw error;
        if (kept !== null) await moveBranch(dirs, kept.branch, record.base, kept.tip);
      }
    }
  };
};

export const sizeOfWork = (work: SavedWork | null): WorkRecord['size'] => {
  if (work === null) return null;
  const { files, insertions, deletions } = work;
  return { files, insertions, deletions };
};

/** It is the agent's: nothing in it keeps the work in the folder from being saved. */
const unreadable = (error: unknown): KeptRefs => {
  const reason = `the agent's own git could not be read: ${messageOf(error)}`;
  return { left: [{ ref: 'HEAD', reason }], notes: [reason], kept: [] };
};

const createClosing = (parts: WorkParts) => {
  const { records, placesOf, release } = parts;
  const commitSoundly = createSoundCommit(parts);
  return async (
    dirs: GitDirs,
    record: WorkRecord,
    title: string,
    complete: boolean,
  ): Promise<SavedWork | null> => {
    const { base, attempt } = record;
    const places = placesOf(record.task_id, attempt);
    const isHere = await isPresent(places.top);
    const kept = isHere
      ? await commitSoundly(dirs, record, title)
      : {
          tip: await commitOf(dirs, `refs/heads/${record.branch}`),
          branch: record.branch,
          notes: [],
          left: [],
          work: null,
        };
    const commit = keptCommit(record, kept.tip);
    const refs = isHere
      ? await keepAgentRefs(dirs, record, places.agentGit, commit ?? base).catch(unreadable)
      : { notes: [], left: [], kept: [] };
    // A branch without a change is not kept.
    if (commit === null) await moveBranch(dirs, record.branch, null, base);
    const closed = {
      ...record,
      branch: kept.branch,
      notes: [...(kept.work?.notes ?? kept.notes), ...refs.notes],
      left: [...kept.left, ...refs.left],
      kept: [...refs.kept],
      commit,
      complete,
      closed: true,
      size: sizeOfWork(kept.work),
    };
    await records.write(closed);
    await release(places);
    if (!isHere)
      throw new GitError(
        `the worktree ${places.top} is gone: what attempt ${attempt} changed there is lost${commit === null ? '' : `; what it had is on ${closed.branch}`}`,
      );
    return kept.work === null ? null : { ...kept.work, notes: closed.notes };
  };
};

export const createSaving = (parts: WorkParts) => {
  const { records, stores, placesOf, release } = parts;
  const close = createClosing(parts);
  return async (
    { taskId, attempt }: NamedAttempt,
    title: string,
    complete: boolean,
  ): Promise<SavedWork | null> => {
    const record = await records.read(taskId, attempt);
    if (record === null) return null;
    return stores.use(record.kind, async (dirs) => {
      if (!record.closed) return close(dirs, record, title, complete);
      if (record.complete !== complete) await records.write({ ...record, complete });
      await release(placesOf(taskId, attempt));
      return workOf(dirs, record);
    });
  };
};
