import assert from 'node:assert/strict';
import { test } from 'node:test';
import { divide } from '../src/money.js';

test('what is left goes to the first of equal parts', () => {
  assert.deepEqual(divide(100, [1, 1, 1]), [34, 33, 33]);
});

test('a refund is divided as the invoice was', () => {
  assert.deepEqual(divide(-100, [1, 1, 1]), [-34, -33, -33]);
});

test('no weight', () => {
  assert.throws(() => divide(1, [0]), RangeError);
});
