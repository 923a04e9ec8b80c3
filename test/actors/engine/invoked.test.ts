import { expect, test, vi } from 'vitest';
import { createActor } from 'xstate';
import { createInvokedActors } from '../../../src/actors/engine/attempts/invoked.ts';
import type { TaskId } from '../../../src/machines/task.ts';

const input = { taskId: 'bd-a1' as TaskId };
const other = { taskId: 'bd-b2' as TaskId };

/** Work that ignores its signal; it ends when the test says so. */
const stubborn = () => {
  const heard: { signal: AbortSignal | null; end: () => void } = { signal: null, end: () => {} };
  const work = (_: typeof input, signal: AbortSignal) =>
    new Promise<void>((resolve) => Object.assign(heard, { signal, end: resolve }));
  return { heard, work };
};

test('the next work of a task begins only when what was left is silent; other tasks do not wait', async () => {
  const invoked = createInvokedActors();
  const { heard, work } = stubborn();
  const begun: string[] = [];
  const next = invoked.actor(async ({ taskId }: typeof input) => void begun.push(taskId));
  const first = createActor(invoked.actor(work), { input }).start();

  first.stop();
  createActor(next, { input }).start();
  createActor(next, { input: other }).start();
  await new Promise(setImmediate);

  expect(heard.signal?.aborted).toBe(true);
  expect(begun).toEqual(['bd-b2']);
  heard.end();
  await invoked.settle(1_000);
  expect(begun).toEqual(['bd-b2', 'bd-a1']);
});

test('work that was left while it waited is never begun', async () => {
  const invoked = createInvokedActors();
  const { heard, work } = stubborn();
  const begun = vi.fn(async () => {});
  createActor(invoked.actor(work), { input }).start().stop();
  createActor(invoked.actor<void, typeof input>(begun), { input }).start().stop();

  heard.end();
  await invoked.whenEnded(input.taskId);

  expect(begun).not.toHaveBeenCalled();
});

test('work that does not end delays the next work, which is told so and tried again', async () => {
  vi.useFakeTimers();
  const invoked = createInvokedActors();
  createActor(invoked.actor(stubborn().work), { input }).start().stop();
  const next = createActor(
    invoked.actor<void, typeof input>(async () => {}),
    { input },
  );
  const failed = new Promise((_, reject) => next.subscribe({ error: reject }));
  next.start();

  const said = expect(failed).rejects.toMatchObject({
    code: 'tracker_unavailable',
    message: 'earlier work of bd-a1 has not ended after 20 s; the server tries again',
  });
  await vi.advanceTimersByTimeAsync(20_000);
  vi.useRealTimers();

  await said;
});
