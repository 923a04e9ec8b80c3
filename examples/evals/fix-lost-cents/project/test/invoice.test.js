import assert from 'node:assert/strict';
import { test } from 'node:test';
import { invoiceShares } from '../src/invoice.js';

test('an even total is shared evenly', () => {
  const shares = invoiceShares({ lines: [{ cents: 50, quantity: 2 }], people: [{ name: 'Amy' }, { name: 'Bo' }] });

  assert.deepEqual(shares, [
    { name: 'Amy', cents: 50 },
    { name: 'Bo', cents: 50 },
  ]);
});
