import { realpath, stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Workspace } from '../../src/actors/workspace/port.ts';
import type { AttemptInput, TaskId } from '../../src/machines/task.ts';

/** An attempt of a task that no other test uses. */
export const anAttempt = (attempt = 1, id = 'bd-a1'): AttemptInput => ({
  taskId: id as TaskId,
  attempt,
  role: 'engineer',
  options: {},
});

/** The contract of every workspace. `open` makes one for a new project. */
export const describeWorkspace = (name: string, open: () => Promise<Workspace>) =>
  describe(`${name} workspace`, () => {
    let workspace: Workspace;
    beforeEach(async () => {
      workspace = await open();
    });

    test('gives an absolute folder that exists, its symlinks resolved', async () => {
      const { root } = await workspace.open(anAttempt());

      expect(isAbsolute(root)).toBe(true);
      expect(await realpath(root)).toBe(root);
      expect((await stat(root)).isDirectory()).toBe(true);
    });

    test('gives the same attempt the same folder again', async () => {
      const first = await workspace.open(anAttempt());

      expect(await workspace.open(anAttempt())).toEqual({ ...first, isNew: false });
      expect(first.isNew).toBe(workspace.mode === 'worktree');
    });

    test('opens several attempts at once', async () => {
      const opened = await Promise.all(
        [1, 2, 3].map((number) => workspace.open(anAttempt(1, `bd-b${number}`))),
      );

      expect(new Set(opened.map(({ root }) => root)).size).toBe(
        workspace.mode === 'shared' ? 1 : 3,
      );
    });
  });
