// Heap for each task that waits for a slot behind a busy one.
import { openSystem, report } from './lib.mjs';

const tasks = 2_000;
const { system, close } = await openSystem({ cap: 0 });
const heap = () => {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
};
const ids = [];
for (let n = 0; n < tasks; n += 50)
  ids.push(
    ...(await Promise.all(
      Array.from({ length: 50 }, () => system.service.create({ description: `task ${n}` })),
    )),
  );
const before = heap();
for (const { task_id } of ids)
  await system.service.execute({ task: task_id, role: 'engineer', options: {} });
const bytes = (heap() - before) / tasks;
if (system.slotUse().waiting !== tasks)
  throw new Error(`${system.slotUse().waiting} of ${tasks} wait`);
await close();
report('heap of one queued task / 8 KiB', {
  ours: bytes / 1024,
  limit: 8,
  ratio: bytes / 8192,
  goal: 1,
  unit: 'KiB',
});
