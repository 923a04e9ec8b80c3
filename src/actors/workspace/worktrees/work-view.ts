import type { TaskId } from '../../../machines/task.ts';
import type { LeftOut, WorkRecord } from '../git/work-records.ts';
import { createWorkRecords } from '../git/work-records.ts';

/** The changes of an attempt, as people see them. */
export interface WorkView {
  /** Absent when no branch has changes of it. */
  readonly branch?: string;
  readonly commit?: string;
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
  readonly merged_at?: string;
  readonly merge_commit?: string;
  readonly notes?: string[];
  readonly left?: LeftOut[];
  readonly discarded_at?: string;
  readonly undone?: true;
  /** The attempt did not complete it: it is merged by force alone. */
  readonly incomplete?: true;
  readonly merge?: MergeView;
  readonly tested?: NonNullable<WorkRecord['tested']>;
  /** Unmerged work of other tasks, and the files in which it will conflict with it. */
  readonly conflicts_with?: { task_id: string; paths: string[] }[];
  /** The work of other tasks that it began without, since it conflicted. */
  readonly conflicts?: readonly { task_id: string; branch: string; files: readonly string[] }[];
}

/** `waiting` and `testing`: in the queue of merges. `with`: tasks with whose work it fails. */
export interface MergeView {
  readonly state: 'waiting' | 'testing' | 'landed' | 'refused';
  readonly with?: string[];
  readonly message?: string;
  readonly command?: string;
  readonly output?: string;
  readonly paths?: string[];
  readonly updatable?: true;
}

const mergeViewOf = ({ merged, refused }: WorkRecord): { readonly merge?: MergeView } => {
  if (merged !== null) return { merge: { state: 'landed' } };
  if (refused === null) return {};
  const { at: _at, code: _code, with: others, updatable, ...why } = refused;
  const fails = others.length === 0 ? {} : { with: [...others] };
  return { merge: { state: 'refused', ...why, ...fails, ...(updatable ? { updatable } : {}) } };
};

export type WorkReads = (taskId: TaskId, attempt: number) => Promise<WorkView | null>;

/** Reads the records of attempts, without git. */
export const createWorkReads = (folder: string): WorkReads => {
  const records = createWorkRecords(folder);
  return async (taskId, attempt) => {
    const record = await records.read(taskId, attempt).catch(() => null);
    if (record?.closed !== true) return null;
    if (record.commit === null && record.left.length + record.notes.length === 0) return null;
    const {
      branch,
      commit,
      left,
      size,
      complete,
      notes,
      merged,
      merged_at: at,
      conflicts,
    } = record;
    return {
      ...(commit === null ? {} : { branch, commit }),
      ...(size ?? { files: 0, insertions: 0, deletions: 0 }),
      ...(at === null ? {} : { merged_at: new Date(at).toISOString() }),
      ...(merged === null ? {} : { merge_commit: merged }),
      ...(notes.length === 0 ? {} : { notes: [...notes] }),
      ...(left.length === 0 ? {} : { left }),
      ...(record.discarded === null
        ? {}
        : {
            discarded_at: new Date(record.discarded.at).toISOString(),
            undone: record.discarded.undone,
          }),
      ...(complete ? {} : { incomplete: true as const }),
      ...(conflicts.length === 0 ? {} : { conflicts }),
      ...(record.tested === null || merged === null ? {} : { tested: record.tested }),
      ...mergeViewOf(record),
    };
  };
};
