import { expect, test } from 'vitest';
import { createQueue, QueueFullError } from '../../../src/actors/tracker/bd/queue.ts';

const setUp = (limit = 10) => {
  const queue = createQueue(limit);
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

test('who waits passes the watch, but not for ever', async () => {
  const { queue, order, work } = setUp(20);

  await Promise.all([
    queue.run('background', work('first')),
    queue.run('background', work('watch')),
    ...['a', 'b', 'c', 'd', 'e', 'f'].map((name) => queue.run('interactive', work(name))),
  ]);

  expect(order).toEqual(['first', 'a', 'b', 'c', 'd', 'watch', 'e', 'f']);
});

test('work that fails fails alone', async () => {
  const { queue, work } = setUp();

  const failed = queue.run('interactive', () => Promise.reject(new Error('broke')));
  const next = queue.run('interactive', work('next'));

  await expect(failed).rejects.toThrow('broke');
  expect(await next).toBe('next');
});

test('a full queue says so, and takes work again when it has room', async () => {
  const { queue, work } = setUp(2);
  const running = ['now', 'one', 'two'].map((name) => queue.run('interactive', work(name)));

  await expect(queue.run('interactive', work('three'))).rejects.toThrow(QueueFullError);
  await Promise.all(running);

  expect(await queue.run('interactive', work('four'))).toBe('four');
});
