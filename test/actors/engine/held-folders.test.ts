import { afterEach, expect, test, vi } from 'vitest';
import { createHeldFolders } from '../../../src/actors/engine/held-folders.ts';
import type { Changes, Workspace } from '../../../src/actors/workspace/port.ts';
import { createSharedWorkspace } from '../../../src/actors/workspace/shared.ts';
import type { TaskId } from '../../../src/machines/task.ts';

const taskId = 'bd-a1' as TaskId;
const changes: Changes = { attempt: 1, patch: 'what is here', guarded: [] };

/** This server, where another one ran the task, and a common repository that never answers. */
const openSilent = (found: Changes | null): Workspace => {
  const never = new Promise<never>(() => {});
  const intent = JSON.stringify({ server: 'two', lacks: null, taking: false, key: 'k' });
  const usage = { taskId, attempt: 1, owner: 'two@1' };
  return createHeldFolders(
    {
      ...createSharedWorkspace({ projectRoot: '/' }),
      diff: async () => found,
      travel: {
        hasRepository: true,
        ...{ keep: () => never, take: () => never, takeWork: () => never, send: () => never },
        ...{ check: async () => null, remove: async () => null },
        unsent: async () => [],
      },
    },
    {
      server: 'one',
      journal: { commit: () => never },
      store: {
        steps: () => [{ taskId, attempt: 1, key: 'folder', intent, result: null }],
        attempts: () => [usage as never],
      },
    },
  );
};

afterEach(() => void vi.useRealTimers());

test('a diff does not wait for a common repository that does not answer, nor stop for it', async () => {
  vi.useFakeTimers();
  const here = openSilent(changes).diff(taskId, 1);
  const absent = openSilent(null)
    .diff(taskId, 1)
    .catch((error: Error) => error.message);
  await vi.advanceTimersByTimeAsync(40_000);

  expect(await here).toEqual(changes);
  expect(await absent).toBe('the common repository did not answer within 30 s');
});
