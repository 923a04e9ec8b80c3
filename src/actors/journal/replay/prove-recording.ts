import { hash } from 'node:crypto';
import { messageOf } from '../../../machines/message-of.ts';
import { finalStatuses, type TaskId } from '../../../machines/task.ts';
import { type ChainEnd, endAfter, faultInChain } from '../../store/check-journal.ts';
import type { KeptEntry } from '../../store/port.ts';
import { withBase } from '../../store/rows/snapshot-data.ts';
import type { TaskView } from '../task-view.ts';
import { shownIn } from '../transition-frames.ts';
import {
  type Gap,
  isGap,
  type RecordedEntry,
  type RecordedItem,
  type Recording,
} from './recording.ts';
import { fold, isTransition, wrongStep } from './replay.ts';

export interface Proof {
  readonly entries: number;
  /** Counted by their hashes only. */
  readonly leftOut: number;
  /** Entries of version 2.1, which have no hash. */
  readonly withoutHash: number;
  /** True when the machines were run over all transitions. */
  readonly isFolded: boolean;
  /** One sentence on the first difference; null: there is none. */
  readonly problem: string | null;
}

export const sealOf = ({ seal: _, ...sealed }: Omit<Recording, 'seal'> & { seal?: string }) =>
  hash('sha256', JSON.stringify(sealed));

const asKeptEntry = ({ task_id, task_seq, ...entry }: RecordedEntry): KeptEntry => ({
  taskId: task_id,
  taskSeq: task_seq,
  ...entry,
});

/** The last item that was checked. */
interface ProvenEnd extends ChainEnd {
  readonly seq: number;
}

const gapFault = ({ through_seq: last }: Gap, { seq }: ProvenEnd): string | null =>
  last > seq ? null : `entries up to ${last} are left out after entry ${seq}: they were swapped`;

const entryFault = (
  item: RecordedEntry,
  taskId: string,
  end: ProvenEnd,
  isNumbered: boolean,
): string | null => {
  const name = `entry ${item.seq}`;
  if (item.task_id !== taskId) return `${name} is of another task, ${item.task_id}`;
  if (end.seq === 0 && item.previous)
    return `${name} is the first one in the file, but not in the journal: entries were cut off at the beginning`;
  const fault = faultInChain(asKeptEntry(item), end, isNumbered);
  if (fault !== null) return `${name} ${fault}`;
  return item.seq > end.seq ? null : `${name} comes after entry ${end.seq}: they were swapped`;
};

const after = (item: RecordedItem, end: ProvenEnd): ProvenEnd =>
  isGap(item)
    ? {
        seq: item.through_seq,
        hash: item.hash ?? end.hash,
        taskSeq: end.taskSeq + item.entries,
      }
    : { seq: item.seq, ...endAfter(asKeptEntry(item), end, null) };

const endFault = (end: ProvenEnd, head: Recording['head'], isNumbered: boolean): string | null => {
  const last = head ?? { seq: 0, hash: null, entries: 0 };
  if (end.seq < last.seq)
    return `entry ${end.seq} is the last one in the file, and ${last.seq} was when it was exported: entries were cut off at the end`;
  const isSame = end.seq === last.seq && end.hash === last.hash;
  return isSame && (!isNumbered || end.taskSeq === last.entries)
    ? null
    : `the file ends with entry ${end.seq}, ${end.taskSeq} in all, and says that it ends with entry ${last.seq}, ${last.entries} in all`;
};

const chainFault = ({ task: { task_id }, items, head }: Recording): string | null => {
  // A journal of an earlier version that is only read has no numbers.
  const isNumbered = items.some((item) => !isGap(item) && item.task_seq > 0);
  let end: ProvenEnd = { seq: 0, hash: null, taskSeq: 0 };
  for (const item of items) {
    const fault = isGap(item) ? gapFault(item, end) : entryFault(item, task_id, end, isNumbered);
    if (fault !== null) return fault;
    end = after(item, end);
  }
  return endFault(end, head, isNumbered);
};

const isFoldable = (items: readonly RecordedItem[]): boolean =>
  items.every((item) => !isGap(item) || (item.transitions === 0 && item.why !== 'removed'));

/** Wrong events may break the machines. */
const foldFault = (taskId: string, entries: readonly KeptEntry[]): string | null => {
  try {
    return wrongStep(fold(taskId as TaskId, entries).steps);
  } catch (error) {
    return `the entries cannot be replayed: ${messageOf(error)}`;
  }
};

/** The view of the task in the last snapshot; null when there is none. */
const lastShown = (entries: readonly KeptEntry[]): TaskView | null => {
  const last = entries.findLast(({ type }) => type === 'snapshot');
  if (last === undefined) return null;
  const base = entries.find(({ seq }) => seq === last.base);
  return shownIn(base === undefined ? last.data : withBase(last.data, base.data));
};

/** Facts of the machines alone; a tracker may have changed the rest since, and closed the task. */
const endFields = ['status', 'attempt', 'result', 'error'] as const;

/** A task that is over must have ended as its last snapshot says. */
const taskFault = (task: TaskView, entries: readonly KeptEntry[]): string | null => {
  const shown = lastShown(entries);
  if (shown === null || !finalStatuses.has(task.status)) return null;
  if (shown.status !== task.status && task.status === 'complete') return null;
  const other = endFields.find(
    (field) => JSON.stringify(task[field]) !== JSON.stringify(shown[field]),
  );
  return other === undefined
    ? null
    : `the ${other} of the task is not what its last entries say: it was changed`;
};

/**
 * Checks the chain of hashes, and that the machines come to the recorded states. Who writes all
 * hashes anew passes the first; only the journal can tell.
 */
export const proveRecording = (recording: Recording): Proof => {
  const { task, items } = recording;
  const entries = items.flatMap((item) => (isGap(item) ? [] : asKeptEntry(item)));
  const isFolded = isFoldable(items) && entries.some(isTransition);
  const problem =
    chainFault(recording) ??
    (isFolded ? (foldFault(task.task_id, entries) ?? taskFault(task, entries)) : null) ??
    (recording.seal === sealOf(recording)
      ? null
      : 'the journal is as it was written, but the task, its changes or the time of the export were changed');
  return {
    entries: entries.length,
    leftOut: items.reduce((sum, item) => sum + (isGap(item) ? item.entries : 0), 0),
    withoutHash: entries.filter((entry) => entry.hash === null).length,
    isFolded,
    problem,
  };
};
