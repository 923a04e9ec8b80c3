// Heap for each task that waits for a slot, beside a bare XState actor that waits for a promise.
import { createActor, createMachine, fromPromise } from 'xstate';
import { openSystem, report } from './lib.mjs';

const tasks = Number(process.env.TASKS ?? 2_000);
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

const machine = createMachine({
  context: ({ input }) => input,
  initial: 'waiting',
  states: { waiting: { invoke: { src: fromPromise(() => new Promise(() => {})) } } },
});
const beforeBare = heap();
const bare = Array.from({ length: tasks }, (_, n) =>
  createActor(machine, { input: { task: `task ${n}` } }).start(),
);
const bareBytes = (heap() - beforeBare) / bare.length;
report('heap of one waiting task / a bare actor', {
  ours: bytes / 1024,
  limit: bareBytes / 1024,
  ratio: bytes / bareBytes,
  goal: 2,
  unit: 'KiB',
});
