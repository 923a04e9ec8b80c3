import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStore } from '../src/store.js';

const picture = (bytes) => new Uint8Array(bytes);

test('the least recently used picture goes first', () => {
  const gone = [];
  const store = createStore({ maxBytes: 10, onEvict: (name) => gone.push(name) });
  store.put('a', picture(4));
  store.put('b', picture(4));
  store.get('a');

  store.put('c', picture(4));

  assert.deepEqual(gone, ['b']);
  assert.equal(store.size(), 8);
});

test('a picture that is too large is not kept', () => {
  const store = createStore({ maxBytes: 10 });

  assert.equal(store.put('a', picture(11)), false);
  assert.equal(store.has('a'), false);
});
