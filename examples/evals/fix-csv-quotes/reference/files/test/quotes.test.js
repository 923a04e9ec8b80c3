import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCsv } from '../src/csv.js';

test('commas, line breaks and quotes within quotes', () => {
  assert.deepEqual(parseCsv('a,"b,c"\r\n"d\ne","f""g"\r\n'), [
    ['a', 'b,c'],
    ['d\ne', 'f"g'],
  ]);
});

test('an open quote is an error', () => {
  assert.throws(() => parseCsv('a\n"b'), /line 2/);
});
