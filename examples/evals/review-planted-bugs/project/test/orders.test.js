import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ofDay } from '../src/orders.js';

test('the newest order comes first', () => {
  assert.deepEqual(ofDay([{ day: 1, at: 1 }, { day: 1, at: 2 }, { day: 2, at: 3 }], 1).map(({ at }) => at), [2, 1]);
});
