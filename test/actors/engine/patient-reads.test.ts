import { expect, test } from 'vitest';
import { StoreAwayError } from '../../../src/actors/store/port.ts';
import { finish, startSystem, untilStatus } from '../../support/running.ts';

test('an attempt waits for a store that is away when it begins to read', async () => {
  let failures = 0;
  const running = await startSystem({
    turns: [finish()],
    options: { maxRetries: 0 },
    store: (near) => ({
      ...near,
      steps: async (...given) => {
        failures += 1;
        if (failures <= 3) throw new StoreAwayError('the database does not answer');
        return near.steps(...given);
      },
    }),
  });
  const { task_id } = await running.service.create({ description: 'x' });
  await running.service.execute({ task: task_id, role: 'engineer', options: {} });

  await untilStatus(running, task_id, 'complete');
  expect(failures).toBeGreaterThan(3);
});
