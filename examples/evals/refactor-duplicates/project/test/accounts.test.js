import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deposit, transfer, withdraw } from '../src/accounts.js';

const createStore = () => {
  const balances = new Map();
  return {
    balance: (user) => balances.get(user) ?? 0,
    add: (user, amount) => balances.set(user, (balances.get(user) ?? 0) + amount),
  };
};

test('money comes, goes and moves', () => {
  const store = createStore();

  assert.deepEqual(deposit({ user: 'amy', amount: 10 }, store), { status: 200, balance: 10 });
  assert.deepEqual(withdraw({ user: 'amy', amount: 3 }, store), { status: 200, balance: 7 });
  assert.deepEqual(transfer({ user: 'amy', amount: 5, to: 'bo' }, store), { status: 200, balance: 2 });
  assert.equal(store.balance('bo'), 5);
});
