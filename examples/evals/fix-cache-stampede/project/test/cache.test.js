import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCache } from '../src/cache.js';

test('a value is loaded once within its time to live', async () => {
  let loads = 0;
  let time = 0;
  const cache = createCache(async () => ++loads, { ttlMs: 10, now: () => time });

  assert.equal(await cache.get('a'), 1);
  time = 9;
  assert.equal(await cache.get('a'), 1);
  time = 10;
  assert.equal(await cache.get('a'), 2);
});
