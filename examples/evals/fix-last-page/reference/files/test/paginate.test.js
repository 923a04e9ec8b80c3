import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paginate } from '../src/paginate.js';

const numbers = (count) => Array.from({ length: count }, (_, index) => index + 1);

test('a list of two full pages', () => {
  assert.deepEqual(paginate(numbers(4), { page: 2, size: 2 }), { items: [3, 4], page: 2, pages: 2, hasNext: false });
});

test('a last page that is not full', () => {
  assert.deepEqual(paginate(numbers(3), { page: 2, size: 2 }), { items: [3], page: 2, pages: 2, hasNext: false });
});

test('an empty list has one empty page', () => {
  assert.deepEqual(paginate([]), { items: [], page: 1, pages: 1, hasNext: false });
});

test('a page outside the range is the nearest', () => {
  assert.equal(paginate(numbers(3), { page: 0, size: 2 }).page, 1);
  assert.equal(paginate(numbers(3), { page: 7, size: 2 }).page, 2);
});
