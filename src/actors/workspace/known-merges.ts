import type { WorkRecord } from './work-records.ts';

const fileKeyOf = ({ task_id, attempt }: Pick<WorkRecord, 'task_id' | 'attempt'>): string =>
  `${task_id}@${attempt}`;

/** Which of the attempts whose records were read are merged. */
export const createKnownMerges = () => {
  /** The merged commit of each record that was read, or null. */
  const known = new Map<string, string | null>();
  const unmerged = new Map<string, WorkRecord>();
  return {
    /** @returns true when its merge was not known */
    take: (record: WorkRecord): boolean => {
      const key = fileKeyOf(record);
      const isNews = record.merged !== null && known.get(key) !== record.merged;
      known.set(key, record.merged);
      if (record.merged === null && record.closed && record.commit !== null)
        unmerged.set(key, record);
      else unmerged.delete(key);
      return isNews;
    },
    setMerged: (record: WorkRecord): void => {
      known.set(fileKeyOf(record), record.merged);
      unmerged.delete(fileKeyOf(record));
    },
    /** Finished work in the repository of the project, which a person may merge by hand. */
    unmergedInProject: (): readonly WorkRecord[] =>
      [...unmerged.values()].filter(({ kind }) => kind === 'project'),
  };
};
