import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paginate } from '../src/paginate.js';

const numbers = (count) => Array.from({ length: count }, (_, index) => index + 1);

test('a list of two full pages', () => {
  assert.deepEqual(paginate(numbers(4), { page: 2, size: 2 }), { items: [3, 4], page: 2, pages: 2, hasNext: false });
});
