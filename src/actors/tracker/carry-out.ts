import type { Acceptance } from '../../machines/task/task-context.ts';
import type { Fence, StatusChange, StatusWrites } from './port.ts';

export const carryOut = async (
  tracker: StatusWrites,
  change: StatusChange,
  fence: Fence,
): Promise<Acceptance> => {
  switch (change.kind) {
    case 'claim':
      return tracker.claim(change.id, fence);
    case 'close':
      return tracker.close(change.id, change.reason, fence);
    case 'reopen':
      return tracker.reopen(change.id, fence);
    case 'release':
      await tracker.release(change.id, change.label, fence);
      return { refusal: null };
  }
};
