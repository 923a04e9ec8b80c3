import assert from 'node:assert/strict';
import { check, load, ownTests } from '../check.mjs';

const { invoiceShares } = await load('src/invoice.js');
const { divide } = await load('src/money.js');
const shares = (cents, ...weights) =>
  invoiceShares({ lines: [{ cents }], people: weights.map((weight, index) => ({ name: `${index}`, weight })) }).map(
    (share) => share.cents,
  );

await check({
  'a cent that is left goes to the first': () => assert.deepEqual(shares(100, 1, 1, 1), [34, 33, 33]),
  'cents go where the most was cut': () => assert.deepEqual(shares(10, 1, 5, 2), [1, 6, 3]),
  'the cause is fixed, not the symptom': () => assert.deepEqual(divide(101, [1, 1]), [51, 50]),
  'a refund mirrors the invoice': () => assert.deepEqual(shares(-100, 1, 1, 1), [-34, -33, -33]),
  'nothing is shared as nothing': () => assert.deepEqual(shares(0, 1, 2), [0, 0]),
  'a weight of zero pays nothing': () => assert.deepEqual(shares(-7, 0, 1), [0, -7]),
  'no weight is a RangeError': () => assert.throws(() => shares(5, 0, 0), RangeError),
  'shares always add up': () => {
    for (let total = -60; total <= 60; total += 1)
      for (const weights of [[1, 2, 3], [7, 7, 7, 1], [0.1, 0.2, 0.7]])
        assert.equal(shares(total, ...weights).reduce((sum, cents) => sum + cents, 0), total);
  },
  'the tests pass, and there are more': () => {
    const { pass, count } = ownTests();
    assert.ok(pass && count > 1, `${count} tests, ${pass ? 'passed' : 'failed'}`);
  },
});
