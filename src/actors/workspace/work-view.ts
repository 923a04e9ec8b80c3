import type { TaskId } from '../../machines/task.ts';
import { createWorkRecords } from './work-records.ts';

/** The changes of an attempt, as people see them. */
export interface WorkView {
  readonly branch: string;
  readonly commit: string;
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
  readonly merged_at?: string;
  readonly merge_commit?: string;
  readonly notes?: string[];
  /** The attempt did not complete it: it is merged by force alone. */
  readonly incomplete?: true;
  /** The work of other tasks that it began without, since it conflicted. */
  readonly conflicts?: readonly { task_id: string; branch: string; files: readonly string[] }[];
}

export type WorkReads = (taskId: TaskId, attempt: number) => Promise<WorkView | null>;

/** Reads the records of attempts, without git. */
export const createWorkReads = (folder: string): WorkReads => {
  const records = createWorkRecords(folder);
  return async (taskId, attempt) => {
    const record = await records.read(taskId, attempt).catch(() => null);
    if (record?.commit == null || !record.closed) return null;
    const { branch, commit, size, complete, notes, merged, merged_at: at, conflicts } = record;
    return {
      ...{ branch, commit },
      ...(size ?? { files: 0, insertions: 0, deletions: 0 }),
      ...(at === null ? {} : { merged_at: new Date(at).toISOString() }),
      ...(merged === null ? {} : { merge_commit: merged }),
      ...(notes.length === 0 ? {} : { notes: [...notes] }),
      ...(complete ? {} : { incomplete: true as const }),
      ...(conflicts.length === 0 ? {} : { conflicts }),
    };
  };
};
