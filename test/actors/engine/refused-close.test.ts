import { expect, test } from 'vitest';
import { ServiceError } from '../../../src/machines/errors.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { embeddedAt } from '../../support/ledger.ts';
import { finish, type Setting, startSystem, untilStatus } from '../../support/running.ts';

const failOne = async (setting: Setting = {}) => {
  const running = await startSystem({ turns: [finish('gave up', 'failed')], ...setting });
  const { service, store } = running;
  const { task_id: other } = await service.create({ description: 'something else' });
  const { task_id: id } = await service.create({ description: 'a task' });
  await service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'failed');
  const types = () =>
    store.read({ taskId: id, after: 0, limit: 1_000 }).map(({ type }) => String(type));
  return { running, service, id: id as TaskId, other: other as TaskId, types };
};

test('a failed task that may not be closed or run again stays as it is, with its error', async () => {
  const { running, service, id, other, types } = await failOne();
  const { error } = await service.status(id);
  await running.tracker.addDependency(id, other);
  const before = types();
  const comments = [{ path: '.', line: null, endLine: null, text: 'do it well' }];

  for (const refused of [
    () => service.close(id, null),
    () => service.retry(id, null, null, null),
    () => service.review(id, { verdict: 'request_changes', attempt: null, comments }),
  ])
    await expect(refused()).rejects.toMatchObject({ code: 'dependencies_unmet' });

  expect(types()).toEqual(before);
  expect(await service.status(id)).toMatchObject({ status: 'failed', error });
});

test('only a close that is carried out is a decision', async () => {
  const { service } = await startSystem();
  const { task_id: first } = await service.create({ description: 'the first' });
  const { task_id: id } = await service.create({ description: 'a task', dependencies: [first] });
  await expect(service.close(id, 'no longer')).rejects.toMatchObject({
    code: 'dependencies_unmet',
  });
  await service.close(first, null);
  await service.close(id, null);
  await service.close(id, null);

  const { decisions } = await service.decisions(50);

  expect(decisions.map(({ task_id, kind }) => [task_id, kind])).toEqual([
    [id, 'closed'],
    [first, 'closed'],
  ]);
});

test('a close that the tracker refuses late ends the attempt no second time', async () => {
  let isAway = false;
  const { service, id, types } = await failOne({
    tracker: (root, ledger) => {
      const tracker = embeddedAt(root, {}, ledger);
      return {
        ...tracker,
        prepare: (change, preparation) => {
          if (isAway && change.kind === 'close')
            throw new ServiceError('tracker_unavailable', { detail: 'no disk', remedy: 'wait' });
          return tracker.prepare(change, preparation);
        },
      };
    },
  });
  isAway = true;
  await expect(service.close(id, null)).rejects.toMatchObject({ code: 'tracker_unavailable' });
  await expect(service.close(id, null)).rejects.toMatchObject({ code: 'tracker_unavailable' });
  const ends = types().filter((type) => type === 'failed' || type === 'stream_closed');
  isAway = false;

  // Who followed the task meanwhile is told that it is over.
  expect(ends).toEqual(['failed', 'stream_closed', 'stream_closed']);
  expect((await service.close(id, null)).status).toBe('complete');
});
