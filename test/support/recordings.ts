import { sealOf } from '../../src/actors/journal/replay/prove-recording.ts';
import type { RecordedEntry, Recording } from '../../src/actors/journal/replay/recording.ts';
import type { TaskView } from '../../src/actors/journal/task-view.ts';
import { hashOfEntry } from '../../src/actors/store/rows/stored-entry.ts';
import { bash, finish, startSystem, untilStatus } from './running.ts';

export const sealed = (recording: Omit<Recording, 'seal'>): Recording => {
  const { seal: _, ...rest } = { seal: '', ...recording };
  return { ...rest, seal: sealOf(rest) };
};

const headOf = (entries: readonly RecordedEntry[]): Recording['head'] => {
  const last = entries.at(-1);
  return last === undefined ? null : { seq: last.seq, entries: entries.length, hash: last.hash };
};

export const recordingOf = (task: TaskView, entries: readonly RecordedEntry[]): Recording =>
  sealed({
    ...{ format: 'agent-task-recording', version: 1, made_at: '2026-01-01T00:00:00.000Z' },
    ...{ made_by: '2.1.0', page: '0'.repeat(64), project: 'basket', changes: null },
    ...{ task, items: entries, head: headOf(entries) },
  });

/** The work of somebody who writes all hashes anew. */
export const rehashed = (
  entries: readonly RecordedEntry[],
  first = 1,
): readonly RecordedEntry[] => {
  let previous = '';
  return entries.map((entry, index) => {
    const { task_id: taskId, task_seq: _, ...kept } = entry;
    const taskSeq = first + index;
    const hash = hashOfEntry(previous, { taskId, taskSeq, ...kept });
    const next = { ...entry, task_seq: taskSeq, previous, hash };
    previous = hash;
    return next;
  });
};

/** A task that ran, with its journal as the method `history` gives it. */
export const recordedTask = async (): Promise<{
  readonly task: TaskView;
  readonly entries: readonly RecordedEntry[];
}> => {
  const running = await startSystem({ turns: [bash('seq 1 5'), finish()] });
  const { task_id } = await running.service.create({ description: 'a task' });
  await running.service.execute({ task: task_id, role: 'engineer', options: {} });
  await untilStatus(running, task_id, 'complete');
  const { entries } = await running.service.history({ taskId: task_id, kept: true });
  return {
    task: await running.service.status(task_id),
    entries: entries as readonly RecordedEntry[],
  };
};
