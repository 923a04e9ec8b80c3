import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCache } from '../src/cache.js';

test('all who ask during a load share it', async () => {
  let loads = 0;
  const cache = createCache(async () => ++loads);

  assert.deepEqual(await Promise.all([cache.get('a'), cache.get('a')]), [1, 1]);
});

test('an error is not remembered', async () => {
  let loads = 0;
  const cache = createCache(async () => {
    loads += 1;
    if (loads === 1) throw new Error('down');
    return 'up';
  });

  await assert.rejects(cache.get('a'), /down/);
  assert.equal(await cache.get('a'), 'up');
});

test('what is deleted during its load is not kept', async () => {
  let loads = 0;
  const cache = createCache(async () => ++loads);

  const first = cache.get('a');
  cache.delete('a');
  await first;

  assert.equal(await cache.get('a'), 2);
});
