import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import test from 'node:test';
import * as shop from '../src/index.js';
import { missing } from '../src/validate.js';

const folder = new URL('../fixtures/', import.meta.url);
const items = readdirSync(folder).map((name) => JSON.parse(readFileSync(new URL(name, folder))));

test('every fixture has what the schema asks for', () => {
  for (const item of items) assert.deepEqual(missing(item), []);
});

test('an amount has two digits of cents', () => {
  assert.equal(shop.amount(1205), '12.05');
});

test('all modules load', async () => {
  const src = new URL('../src/', import.meta.url);
  for (const name of readdirSync(src, { recursive: true }))
    if (name.endsWith('.js')) await import(new URL(name, src));
});
