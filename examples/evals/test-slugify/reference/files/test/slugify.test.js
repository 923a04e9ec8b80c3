import assert from 'node:assert/strict';
import { test } from 'node:test';
import { slugify } from '../src/slugify.js';

test('words are in lower case and joined by dashes', () => {
  assert.equal(slugify('Hello World'), 'hello-world');
});

test('accents are taken off', () => {
  assert.equal(slugify('Crème Brûlée'), 'creme-brulee');
});

test('separators in a row count once, and none is at the ends', () => {
  assert.equal(slugify('  a -- b!  '), 'a-b');
});

test('digits stay', () => {
  assert.equal(slugify('Top 10 of 2024'), 'top-10-of-2024');
});

test('at most 40 characters, and no dash where it was cut', () => {
  assert.equal(slugify('x'.repeat(41)), 'x'.repeat(40));
  assert.equal(slugify(`${'x'.repeat(39)} yz`), 'x'.repeat(39));
});

test('a name of which nothing is left', () => {
  assert.equal(slugify('!?'), 'untitled');
});
