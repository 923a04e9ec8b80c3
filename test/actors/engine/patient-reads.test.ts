import { expect, test } from 'vitest';
import { type Store, StoreAwayError } from '../../../src/actors/store/port.ts';
import { ServiceError } from '../../../src/machines/errors.ts';
import { embeddedAt } from '../../support/ledger.ts';
import { finish, startSystem, untilStatus } from '../../support/running.ts';

const away = new StoreAwayError('the database does not answer');

/** Fails three times. */
const failingFirst = (): { readonly count: () => number; readonly read: () => void } => {
  let failures = 0;
  return {
    count: () => failures,
    read: () => {
      failures += 1;
      if (failures <= 3) throw away;
    },
  };
};

test.each<[string, (near: Store, read: () => void) => Partial<Store>]>([
  [
    'it has its slot',
    (near, read) => ({
      takeOver: async (id) => {
        if (id.includes('#')) read();
        return near.takeOver(id);
      },
    }),
  ],
  [
    'it begins to read',
    (near, read) => ({
      steps: async (...given) => {
        read();
        return near.steps(...given);
      },
    }),
  ],
])('an attempt waits for a store that is away when %s', async (_, awayAt) => {
  const { count, read } = failingFirst();
  const running = await startSystem({
    turns: [finish()],
    options: { maxRetries: 0 },
    store: (near) => ({ ...near, ...awayAt(near, read) }),
  });
  const { task_id } = await running.service.create({ description: 'x' });
  await running.service.execute({ task: task_id, role: 'engineer', options: {} });

  await untilStatus(running, task_id, 'complete');
  expect(count()).toBeGreaterThan(3);
});

test('an attempt that looks for the work before it waits for tasks in a store that is away', async () => {
  let follower = '';
  let failures = 0;
  let isBegun = false;
  const running = await startSystem({
    turns: [finish()],
    options: { maxRetries: 0 },
    store: (near) => ({
      ...near,
      steps: (...given) => {
        isBegun = true;
        return near.steps(...given);
      },
    }),
    tracker: (root, ledger) => {
      const tracker = embeddedAt(root, {}, ledger);
      const find: typeof tracker.find = async (id) => {
        if (isBegun && id !== follower && ++failures <= 3)
          throw new ServiceError(
            'tracker_unavailable',
            { detail: away.message, remedy: 'wait' },
            { cause: away },
          );
        return tracker.find(id);
      };
      return { ...tracker, find };
    },
  });
  const first = await running.service.create({ description: 'x' });
  await running.service.close(first.task_id, null);
  const { task_id } = await running.service.create({
    description: 'y',
    dependencies: [first.task_id],
  });
  follower = task_id;
  await running.service.execute({ task: task_id, role: 'engineer', options: {} });

  await untilStatus(running, task_id, 'complete');
  expect(failures).toBeGreaterThan(3);
});
