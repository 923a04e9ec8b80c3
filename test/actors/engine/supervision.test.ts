import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { bash, finish, startServer, startSystem, untilStatus } from '../../support/running.ts';

/** A number that throws so many times when it is compared. */
const breaking = (value: number, times: number): number => {
  let left = times;
  const compared = (): number => {
    left -= 1;
    if (left >= 0) throw new Error('the comparison broke');
    return value;
  };
  return { valueOf: compared } as unknown as number;
};

const untilGo = bash('while test ! -e go; do sleep 0.05; done', 60);
const patience = { interval: 20 };

test('a supervisor that breaks is said in /health; a new one takes up who works and who waits', {
  tags: ['slow'],
}, async () => {
  const server = await startServer({
    turns: [untilGo, finish()],
    options: { cap: 1, onInterrupted: 'repeat' },
  });
  const { system, service, base } = server;
  const health = async () => (await (await fetch(`${base}/health`)).json()) as unknown;
  const ids: string[] = [];
  for (const priority of [2, 3, 1])
    ids.push((await service.create({ description: 'a task', priority })).task_id);
  for (const task of ids) await service.execute({ task, role: 'engineer', options: {} });
  await vi.waitFor(
    async () => expect((await service.status(ids[0] ?? '')).phase).toBe('acting'),
    patience,
  );

  system.reconfigure({ ...system.settings(), cap: breaking(1, 2) });

  await vi.waitFor(
    async () =>
      expect(await health()).toMatchObject({
        status: 'degraded',
        checks: {
          supervisor: {
            status: 'failing',
            detail: expect.stringContaining('the supervisor broke'),
          },
        },
      }),
    patience,
  );
  await vi.waitFor(
    async () => expect(await health()).toMatchObject({ status: 'healthy' }),
    patience,
  );
  expect(system.slotUse()).toMatchObject({ running: 1, waiting: 2 });
  writeFileSync(join(server.root, 'go'), '');
  const views = await Promise.all(ids.map((id) => untilStatus(server, id, 'complete', 'failed')));
  expect(views.map(({ status, attempt }) => [status, attempt])).toEqual(
    ids.map(() => ['complete', 1]),
  );
  const ends = views.map(({ completed_at }) => completed_at ?? '');
  expect([ends[0], ends[2], ends[1]], 'by priority').toEqual(ends.toSorted());
});

test('a server that is stopped while its supervisor is broken leaves its tasks to the next one', async () => {
  const setting = {
    turns: [untilGo, finish()],
    options: { cap: 1, onInterrupted: 'repeat' as const },
  };
  const first = await startSystem(setting);
  const { task_id: id } = await first.service.create({ description: 'a task' });
  await first.service.execute({ task: id, role: 'engineer', options: {} });
  await vi.waitFor(
    async () => expect((await first.service.status(id)).phase).toBe('acting'),
    patience,
  );
  first.system.reconfigure({ ...first.system.settings(), cap: breaking(1, 9) });
  await vi.waitFor(
    () => expect(first.logged.filter(({ message }) => message.includes('broke'))).toHaveLength(2),
    patience,
  );
  await first.stop();

  const second = await startSystem({ ...setting, root: first.root, stateDir: first.stateDir });
  writeFileSync(join(second.root, 'go'), '');

  expect(await untilStatus(second, id, 'complete', 'failed')).toMatchObject({
    status: 'complete',
    attempt: 1,
  });
});
