import assert from 'node:assert/strict';
import { test } from 'node:test';
import { delayMs } from '../src/backoff.js';

test('it doubles up to a minute', () => {
  assert.deepEqual([1, 2, 3, 9].map((attempt) => delayMs(attempt, 1)), [1000, 2000, 4000, 60000]);
});

test('jitter takes half of it at most', () => {
  assert.equal(delayMs(2, 0), 1000);
});
