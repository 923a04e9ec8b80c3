import assert from 'node:assert/strict';
import { test } from 'node:test';
import { total } from '../src/basket.js';

test('an empty basket costs nothing', () => {
  assert.equal(total([]), 0);
});

test('every line counts as often as its quantity says', () => {
  assert.equal(total([{ price: 250, quantity: 2 }, { price: 100, quantity: 3 }]), 800);
});
