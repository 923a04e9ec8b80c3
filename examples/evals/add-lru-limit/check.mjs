import assert from 'node:assert/strict';
import { check, load, ownTests } from '../check.mjs';

const { createStore } = await load('src/store.js');
const picture = (bytes) => new Uint8Array(bytes);
const open = (maxBytes) => {
  const gone = [];
  return { gone, store: createStore({ maxBytes, onEvict: (name) => gone.push(name) }) };
};
const names = (store) => ['a', 'b', 'c', 'd'].filter((name) => store.has(name)).join('');

await check({
  'the least recently used goes first': () => {
    const { store, gone } = open(10);
    store.put('a', picture(4));
    store.put('b', picture(4));
    store.get('a');
    store.put('c', picture(4));
    assert.deepEqual([names(store), gone, store.size()], ['ac', ['b'], 8]);
  },
  'has is not a use': () => {
    const { store } = open(8);
    store.put('a', picture(4));
    store.put('b', picture(4));
    store.has('a');
    store.put('c', picture(4));
    assert.equal(names(store), 'bc');
  },
  'put again is a use, and counts only the new size': () => {
    const { store, gone } = open(10);
    store.put('a', picture(4));
    store.put('b', picture(4));
    store.put('a', picture(6));
    assert.deepEqual([names(store), gone, store.size()], ['ab', [], 10]);
    store.put('c', picture(1));
    assert.deepEqual([names(store), gone], ['ac', ['b']]);
  },
  'several go, oldest first': () => {
    const { store, gone } = open(10);
    for (const name of ['a', 'b', 'c']) store.put(name, picture(3));
    store.put('d', picture(7));
    assert.deepEqual([gone, names(store)], [['a', 'b'], 'cd']);
  },
  'too large for any room': () => {
    const { store, gone } = open(10);
    store.put('a', picture(2));
    store.put('b', picture(2));
    assert.equal(store.put('a', picture(11)), false);
    assert.deepEqual([names(store), gone, store.size()], ['b', [], 2]);
  },
  'exactly full is not too much': () => {
    const { store, gone } = open(10);
    assert.equal(store.put('a', picture(10)), true);
    assert.deepEqual(gone, []);
  },
  'deleting makes room and is no eviction': () => {
    const { store, gone } = open(10);
    store.put('a', picture(10));
    assert.equal(store.delete('a'), true);
    store.put('b', picture(10));
    assert.deepEqual([gone, store.size()], [[], 10]);
  },
  'no limit without maxBytes': () => {
    const store = createStore();
    for (const name of ['a', 'b', 'c']) store.put(name, picture(1_000_000));
    assert.equal(store.size(), 3_000_000);
  },
  'the tests pass, and there are more': () => {
    const { pass, count } = ownTests();
    assert.ok(pass && count > 1, `${count} tests, ${pass ? 'passed' : 'failed'}`);
  },
});
