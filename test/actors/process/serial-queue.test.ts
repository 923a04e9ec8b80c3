import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createSerialQueue, QueueFullError } from '../../../src/actors/process/serial-queue.ts';

test('works run one after the other in order of arrival, also after a failure', async () => {
  const queue = createSerialQueue();
  const seen: string[] = [];
  const work = (name: string, ms: number) => async () => {
    seen.push(`${name} begins`);
    await delay(ms);
    seen.push(`${name} ends`);
    return name;
  };

  const results = await Promise.allSettled([
    queue(work('a', 20)),
    queue(async () => Promise.reject(new Error('no'))),
    queue((): Promise<string> => {
      throw new Error('at once');
    }),
    queue(work('b', 1)),
  ]);

  expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
  expect(
    results.map((result) => (result.status === 'fulfilled' ? result.value : String(result.reason))),
  ).toEqual(['a', 'Error: no', 'Error: at once', 'b']);
});

test('work that is aborted while it waits rejects at once and never begins; later work does', async () => {
  const queue = createSerialQueue();
  const abort = new AbortController();
  let [begun, waited] = [false, 0];
  const first = queue(() => delay(30));
  const second = queue(
    async () => {
      begun = true;
    },
    { signal: abort.signal, onWait: () => (waited += 1) },
  );
  const third = queue(async () => 'third');

  abort.abort(new Error('enough'));

  await expect(second).rejects.toThrow('enough');
  await first;
  expect(await third).toBe('third');
  expect([begun, waited]).toEqual([false, 1]);
});

test('work that is aborted before it is queued does not begin, and a later abort does not end running work', async () => {
  const queue = createSerialQueue();
  const abort = new AbortController();
  const running = queue(() => delay(20, 'ran'), { signal: abort.signal });
  await delay(1);
  abort.abort(new Error('enough'));

  await expect(queue(async () => 'never', { signal: abort.signal })).rejects.toThrow('enough');
  expect(await running).toBe('ran');
});

const setUp = (limit = 10) => {
  const queue = createSerialQueue(limit);
  const order: string[] = [];
  let atOnce = 0;
  const work = (name: string) => async () => {
    atOnce += 1;
    expect(atOnce).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 1));
    order.push(name);
    atOnce -= 1;
    return name;
  };
  return { queue, order, work };
};

test('interactive work goes before background work, but not for ever', async () => {
  const { queue, order, work } = setUp(20);

  await Promise.all([
    queue(work('first'), { urgency: 'background' }),
    queue(work('watch'), { urgency: 'background' }),
    ...['a', 'b', 'c', 'd', 'e', 'f'].map((name) => queue(work(name))),
  ]);

  expect(order).toEqual(['first', 'a', 'b', 'c', 'd', 'watch', 'e', 'f']);
});

test('work that fails does not affect other work', async () => {
  const { queue, work } = setUp();

  const failed = queue(() => Promise.reject(new Error('broke')));
  const next = queue(work('next'));

  await expect(failed).rejects.toThrow('broke');
  expect(await next).toBe('next');
});

test('a full queue refuses work, and accepts it again when it has room', async () => {
  const { queue, work } = setUp(2);
  const running = ['now', 'one', 'two'].map((name) => queue(work(name)));

  await expect(queue(work('three'))).rejects.toThrow(QueueFullError);
  await Promise.all(running);

  expect(await queue(work('four'))).toBe('four');
});
