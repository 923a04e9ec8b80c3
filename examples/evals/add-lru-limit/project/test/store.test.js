import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStore } from '../src/store.js';

test('what is put can be had, and counts', () => {
  const store = createStore();

  assert.equal(store.put('a', new Uint8Array(3)), true);
  store.put('a', new Uint8Array(5));

  assert.equal(store.get('a').byteLength, 5);
  assert.equal(store.size(), 5);
});
