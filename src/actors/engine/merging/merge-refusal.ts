import { type Refusal, refusal } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';

interface EndFrame {
  readonly type: string;
  readonly attempt: number;
  readonly data: unknown;
}

const statusByEnd: Readonly<Record<string, string>> = {
  completed: 'complete',
  failed: 'failed',
  cancelled: 'cancelled',
};
const isByHand = (data: unknown): boolean =>
  typeof data === 'object' && data !== null && 'by_hand' in data;

/** The first end of the attempt, whatever happened to the task later. Null for other frames. */
export const endOfAttempt = (frame: EndFrame, attempt: number): string | null => {
  const end = frame.attempt === attempt ? statusByEnd[frame.type] : undefined;
  return end === 'complete' && isByHand(frame.data) ? 'closed by hand' : (end ?? null);
};

export interface MergeWish {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly isLive: boolean;
  /** The status of the task by now: a person may have closed it. */
  readonly status: string;
  /** As `endOfAttempt` returns it. */
  readonly end: string | null;
  readonly force: boolean;
  readonly isDiscarded: boolean;
  /** It had landed, and was taken back. */
  readonly isUndone: boolean;
  /** It lands by its pull request. */
  readonly isAtForge: boolean;
}

const commandForAnother = (status: string): string => {
  if (status === 'complete') return 'reopen';
  return status === 'failed' || status === 'cancelled' ? 'retry' : 'run';
};

/** Null when the work may be merged. */
export const refusesMerge = ({
  taskId,
  attempt,
  isLive,
  status,
  end,
  force,
  isDiscarded,
  isUndone,
  isAtForge,
}: MergeWish): Refusal | null => {
  const refuse = (state: string, allowed: readonly string[]): Refusal =>
    refusal('event_not_allowed', {
      task_id: taskId,
      event: 'merge',
      state: `${state} (attempt ${attempt})`,
      allowed,
    });
  if (isLive) return refuse('at work', ['cancel', 'merge it when it has ended']);
  if (isUndone && commandForAnother(status) === 'run')
    return refuse('open again since its work was undone', ['diff', 'run']);
  if (isDiscarded)
    return refuse(isUndone ? 'undone' : 'discarded', ['diff', commandForAnother(status)]);
  if (isAtForge && !force)
    return refuse('in an open pull request', ['pr', 'discard', 'merge --force']);
  if (force || end === 'complete') return null;
  return refuse(end ?? 'not complete', ['diff', commandForAnother(status), 'merge --force']);
};
