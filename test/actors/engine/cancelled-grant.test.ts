import { expect, test } from 'vitest';
import { bash, finish, startSystem, untilStatus } from '../../support/running.ts';

/** Somebody cancels it after it left the queue in its chart and before that is saved. */
test('a slot that is granted to a task which is being cancelled goes to the next one', async () => {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let isHeld = false;
  const running = await startSystem({
    turns: [bash('true'), finish()],
    options: { cap: 1 },
    store: (near) => ({
      ...near,
      commit: async (...changes) => {
        const ends = changes.some(({ actor }) => actor?.snapshot.includes('"value":"complete"'));
        if (ends && !isHeld) {
          isHeld = true;
          await opened;
        }
        // The slot of the first one is granted while this is under way.
        if (changes.some(({ actor }) => actor?.snapshot.includes('"cancelling"')))
          await new Promise((resolve) => setTimeout(resolve, 50));
        return near.commit(...changes);
      },
    }),
  });
  const { service } = running;
  const run = async (): Promise<string> => {
    const { task_id } = await service.create({ description: 'a task' });
    await service.execute({ task: task_id, role: 'engineer', options: {} });
    return task_id;
  };
  const first = await run();
  const [second, third] = [await run(), await run()];
  while (!isHeld) await new Promise(setImmediate);

  const cancelled = service.cancel(second, null);
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  open();

  await cancelled;
  await untilStatus(running, first, 'complete');
  await untilStatus(running, third, 'complete');
  expect((await service.status(second)).status).toBe('cancelled');
  expect(running.system.slotUse()).toMatchObject({ running: 0, waiting: 0 });
});
