import { expect, test } from 'vitest';
import { differenceFrom, entriesUpTo, fold } from '../../../src/actors/journal/replay/replay.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { finish, type Running, startSystem, untilStatus } from '../../support/running.ts';

const run = async (running: Running, verify?: readonly string[]) => {
  const { task_id } = await running.service.create({ description: 'a task' });
  const options = verify === undefined ? {} : { verify };
  await running.service.execute({ task: task_id, role: 'engineer', options });
  return task_id as TaskId;
};

test('a replay of the journal reaches every recorded state, and the saved one', async () => {
  const look = { calls: [{ tool: 'find', arguments: { pattern: '*' } }] };
  const running = await startSystem({ turns: [look, finish()] });
  const id = await run(running, ['true']);
  await untilStatus(running, id, 'complete');

  const { steps, task, agent } = fold(id, await entriesUpTo(running.store, id, null));

  expect(steps.length).toBeGreaterThan(10);
  expect(steps.filter(({ same }) => !same)).toEqual([]);
  expect([task.value, agent?.value]).toEqual(['complete', 'done']);
  expect(agent?.context.usage).toMatchObject({ turns: 2, tool_calls: 2 });
  expect(await differenceFrom(running.store, id)).toBeNull();
});

test.each(['failed', 'cancelled'] as const)(
  'replays a task that was %s and then ran again',
  async (end) => {
    const running = await startSystem({ turns: [finish('no', 'failed')] });
    const id = await run(running);
    if (end === 'cancelled') await running.service.cancel(id, 'not now');
    await untilStatus(running, id, 'failed', 'cancelled');
    await running.service.retry(id, null, null, null);
    await untilStatus(running, id, 'failed');

    expect(
      fold(id, await entriesUpTo(running.store, id, null)).steps.filter(({ same }) => !same),
    ).toEqual([]);
    expect(await differenceFrom(running.store, id)).toBeNull();
  },
);

test('up to a point it shows the task as it was then', async () => {
  const running = await startSystem({ turns: [finish()] });
  const id = await run(running);
  await untilStatus(running, id, 'complete');
  const working = running.store
    .read({ taskId: id, after: 0, limit: 100 })
    .find(({ data }) => data.includes('"value":{"started":"working"}'));

  const { task } = fold(id, await entriesUpTo(running.store, id, working?.seq ?? 0));

  expect(task.value).toEqual({ started: 'working' });
  expect(task.context.attempt).toBe(1);
});

test('a saved state that the journal does not lead to is named', async () => {
  const running = await startSystem({ turns: [finish()], tampered: true });
  const id = await run(running);
  await untilStatus(running, id, 'complete');
  const saved = running.store.actor(id);
  if (saved === null) throw new Error('nothing was saved');
  const snapshot = JSON.parse(saved.snapshot);
  snapshot.context.attempt = 7;
  await running.store.commit({
    entries: [],
    actor: { ...saved, snapshot: JSON.stringify(snapshot) },
  });

  expect(await differenceFrom(running.store, id)).toContain(
    'the saved state of the task is not what its journal makes of it',
  );
});
