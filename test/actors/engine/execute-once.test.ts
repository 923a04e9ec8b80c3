import { expect, test, vi } from 'vitest';
import type { ExecuteRequest } from '../../../src/actors/engine/service/execute-task.ts';
import { crash } from '../../support/crash.ts';
import { embeddedAt } from '../../support/ledger.ts';
import { finish, type Setting, startSystem, untilStatus } from '../../support/running.ts';

test('a request is carried out once when the server dies right after it created the task', async () => {
  const setting: Setting = { turns: [finish()] };
  const running = await startSystem({
    ...setting,
    tracker: (root, ledger) => {
      const tracker = embeddedAt(root, {}, ledger);
      const create = async (...given: Parameters<typeof tracker.create>) => {
        await tracker.create(...given);
        return new Promise<never>(() => {});
      };
      return { ...tracker, create };
    },
  });
  const request = { task: 'Do it once', role: 'engineer', options: {}, requestId: 'r1' } as const;
  void running.service.execute(request).catch(() => {});
  const tasks = async () => (await running.service.list({})).tasks;
  await vi.waitFor(async () => expect(await tasks()).toHaveLength(1));

  const next = await startSystem(await crash(running, setting));
  const { task_id } = await next.service.execute(request);
  const again = await next.service.execute(request);

  expect(again.task_id).toBe(task_id);
  expect((await next.service.list({})).tasks.map((task) => task.task_id)).toEqual([task_id]);
  expect(await untilStatus(next, task_id, 'complete')).toMatchObject({ attempt: 1 });
});

test('a request whose run was refused runs when it comes again', async () => {
  const running = await startSystem({ turns: [finish()] });
  const first = (await running.service.create({ description: 'first' })).task_id;
  const request: ExecuteRequest = {
    ...{ task: 'second', role: 'engineer', options: {}, requestId: 'r1' },
    draft: { dependencies: [first] },
  };

  await expect(running.service.execute(request)).rejects.toMatchObject({
    code: 'dependencies_unmet',
  });
  await running.service.close(first, null);
  const { task_id } = await running.service.execute(request);

  expect(await untilStatus(running, task_id, 'complete')).toMatchObject({ attempt: 1 });
  expect((await running.service.list({})).tasks).toHaveLength(2);
});
