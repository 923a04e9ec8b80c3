import assert from 'node:assert/strict';
import test from 'node:test';
import { withTax } from '../src/cart.js';

test('tax is added to the total', () => {
  assert.equal(withTax([{ name: 'pen', cents: 100, count: 2 }]), 238);
});
