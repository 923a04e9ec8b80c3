import type { TaskId } from '../../../machines/task.ts';
import { parseTaskId } from '../../../machines/task.ts';
import { sourceOf } from '../../../machines/tracked-task.ts';
import type { Forge } from '../../forge/port.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { EntryReads } from '../../store/port.ts';
import type { TrackerReads } from '../../tracker/port.ts';

export interface WriteBackPorts {
  readonly store: Pick<EntryReads, 'read'>;
  readonly tracker: Pick<TrackerReads, 'findMany'>;
  readonly status: (taskId: string) => Promise<TaskView>;
}

const entriesAtOnce = 1_000;
const told = new Set(['status_update', 'completed', 'failed', 'cancelled', 'pullRequest']);

/** Null: nothing is said of it. */
const textOf = ({ task_id: id, status, attempt, work, pull_request: pr }: TaskView) => {
  const task = `task \`${id}\`, attempt ${attempt}`;
  if (attempt === 0) return null;
  if (status === 'started') return `An agent works on this (${task}).`;
  if (status === 'failed' || status === 'cancelled')
    return `The agent did not complete this (${task}, ${status}). A person looks at it.`;
  if (status !== 'complete') return null;
  if (pr?.url !== undefined) return `An agent completed this (${task}): ${pr.url}`;
  const where = work?.branch === undefined ? '' : `: its work is on the branch \`${work.branch}\``;
  return `An agent completed this (${task})${where}.`;
};

/**
 * Says below an issue what became of its task, in one comment that is edited. Reads the journal from a
 * cursor, so nothing is left out after a crash.
 */
export const createWriteBack = ({ store, tracker, status }: WriteBackPorts) => {
  /** What was written last, by task; another server may have written the same. */
  const written = new Map<string, string>();

  const write = async (forge: Forge, id: TaskId, number: number, signal: AbortSignal) => {
    const text = textOf(await status(id));
    if (text === null || written.get(id) === text) return false;
    await forge.note(number, { key: `source:${id}`, text }, signal);
    written.delete(id);
    written.set(id, text);
    for (const [oldest] of written) if (written.size > entriesAtOnce) written.delete(oldest);
    return true;
  };

  /** @returns where the next call begins, and whether something was written */
  return async (
    forge: Forge,
    repository: string,
    cursor: number,
    signal: AbortSignal,
  ): Promise<{ readonly cursor: number; readonly wrote: boolean }> => {
    const page = `/${repository}/issues/`.toLowerCase();
    let wrote = false;
    for (let at = cursor; ; ) {
      const entries = await store.read({ after: at, limit: entriesAtOnce });
      const ids = new Set(
        entries.flatMap(({ type, taskId }) =>
          told.has(type) ? (parseTaskId(taskId.replace(/\/pr$/, '')) ?? []) : [],
        ),
      );
      for (const { id, externalRef } of await tracker.findMany([...ids])) {
        const source = sourceOf(externalRef);
        if (source === null || !source.url.toLowerCase().includes(page)) continue;
        if (await write(forge, id, source.number, signal)) wrote = true;
      }
      at = entries.at(-1)?.seq ?? at;
      if (entries.length < entriesAtOnce) return { cursor: at, wrote };
    }
  };
};
