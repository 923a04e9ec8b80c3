import { entry } from '../../actors/journal/event-types.ts';
import type { Journal } from '../../actors/journal/journal.ts';
import type { Interrupted } from '../../actors/sandbox/shared-folder.ts';
import { parseTaskId } from '../../machines/task.ts';

export interface InterruptedNote {
  readonly taskId: string | null;
  readonly attempt: number;
  readonly message: string;
  /** Something of it is still where it was. */
  readonly isLeft: boolean;
}

export const noteOf = ({ attempt, moved, left, folder }: Interrupted): InterruptedNote => {
  const [, id = null, number = '0'] = /^[^/]*\/(.+)#(\d+)$/.exec(attempt ?? '') ?? [];
  const parts = [
    ...(moved.length === 0 ? [] : [`${moved.join(', ')} was moved to ${folder}`]),
    ...(left.length === 0 ? [] : [`this is still there: ${left.join(', ')}`]),
  ];
  const message = `a command that ran when the server died made what other programs obey: ${parts.join('; ')}`;
  return { taskId: id, attempt: Number(number), message, isLeft: left.length > 0 };
};

/** Writes each to the journal of its task. */
export const tellTasks = (
  notes: readonly InterruptedNote[],
  journal: Pick<Journal, 'gather'>,
): void => {
  for (const { taskId, attempt, message } of notes) {
    const id = taskId === null ? null : parseTaskId(taskId);
    if (id === null) continue;
    const data = { level: 'warn', message };
    void journal.gather({ entries: [entry(id, attempt, 'log', Date.now(), data)] });
  }
};
