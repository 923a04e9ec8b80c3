import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createMutex } from '../../../src/actors/process/serial-queue.ts';

test('works run one after the other, in the order in which they came, whatever becomes of them', async () => {
  const mutex = createMutex();
  const seen: string[] = [];
  const work = (name: string, ms: number) => async () => {
    seen.push(`${name} begins`);
    await delay(ms);
    seen.push(`${name} ends`);
    return name;
  };

  const results = await Promise.allSettled([
    mutex(work('a', 20)),
    mutex(async () => Promise.reject(new Error('no'))),
    mutex((): Promise<string> => {
      throw new Error('at once');
    }),
    mutex(work('b', 1)),
  ]);

  expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
  expect(results.map((result) => (result.status === 'fulfilled' ? result.value : String(result.reason)))).toEqual([
    'a',
    'Error: no',
    'Error: at once',
    'b',
  ]);
});

test('who is aborted while it waits is let go at once and never begins; who comes after it does', async () => {
  const mutex = createMutex();
  const abort = new AbortController();
  let [begun, waited] = [false, 0];
  const first = mutex(() => delay(30));
  const second = mutex(
    async () => {
      begun = true;
    },
    { signal: abort.signal, onWait: () => (waited += 1) },
  );
  const third = mutex(async () => 'third');

  abort.abort(new Error('enough'));

  await expect(second).rejects.toThrow('enough');
  await first;
  expect(await third).toBe('third');
  expect([begun, waited]).toEqual([false, 1]);
});

test('who is aborted before it comes does not begin, and an abort later does not end the work', async () => {
  const mutex = createMutex();
  const abort = new AbortController();
  const running = mutex(() => delay(20, 'ran'), { signal: abort.signal });
  await delay(1);
  abort.abort(new Error('enough'));

  await expect(mutex(async () => 'never', { signal: abort.signal })).rejects.toThrow('enough');
  expect(await running).toBe('ran');
});
