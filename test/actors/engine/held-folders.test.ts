import { afterEach, expect, test, vi } from 'vitest';
import { createHeldFolders } from '../../../src/actors/engine/servers/held-folders.ts';
import type {
  Changes,
  KeyedAttempt,
  Workspace,
  WorkTravel,
} from '../../../src/actors/workspace/port.ts';
import { createSharedWorkspace } from '../../../src/actors/workspace/worktrees/select-workspace.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';

const taskId = 'bd-a1' as TaskId;
const changes: Changes = { attempt: 1, patch: 'what is here', guarded: [] };

const never = new Promise<never>(() => {});

/** This server, where another one ran the task, and a common repository. */
const openOther = (
  found: Changes | null,
  takeWork: WorkTravel['takeWork'] = () => never,
): Workspace => {
  const intent = JSON.stringify({ server: 'two', lacks: null, taking: false, key: 'k' });
  const usage = { taskId, attempt: 1, owner: 'two@1' };
  return createHeldFolders(
    {
      ...createSharedWorkspace({ projectRoot: '/' }),
      diff: async () => found,
      travel: {
        hasRepository: true,
        ...{ keep: () => never, take: () => never, takeWork, send: () => never },
        ...{ check: async () => null, remove: async () => null },
        unsent: async () => [],
      },
    },
    {
      server: 'one',
      journal: { commit: async () => [] as never },
      store: {
        steps: (id) =>
          id === taskId ? [{ taskId, attempt: 1, key: 'folder', intent, result: null }] : [],
        attempts: () => [usage as never],
      },
    },
  );
};

afterEach(() => void vi.useRealTimers());

test('a diff does not wait for a common repository that does not answer, nor stop for it', async () => {
  vi.useFakeTimers();
  const here = openOther(changes).diff(taskId, 1);
  const absent = openOther(null)
    .diff(taskId, 1)
    .catch((error: Error) => error.message);
  await vi.advanceTimersByTimeAsync(40_000);

  expect(await here).toEqual(changes);
  expect(await absent).toBe('the common repository did not answer within 30 s');
});

test.each([
  { takeWork: async (keyed: readonly KeyedAttempt[]) => keyed, count: 1 },
  { takeWork: async () => [], count: 0 },
])(
  'an agent is told when work that it builds on is nowhere: $count',
  async ({ takeWork, count }) => {
    const { notes } = await openOther(null, takeWork).open(anAttempt(1, 'bd-b2'), [taskId]);

    expect(notes).toHaveLength(count);
    expect(notes.join()).toMatch(count === 0 ? /^$/ : /bd-a1 was done on the server two: what it/);
  },
);
