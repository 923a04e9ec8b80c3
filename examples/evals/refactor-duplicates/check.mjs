import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { check, load, ownTests } from '../check.mjs';

const accounts = await load('src/accounts.js');
const src = join(process.argv[2], 'src');
const sources = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.js'))
  .map((name) => readFileSync(join(src, name), 'utf8'))
  .join('\n');
const times = (text) => sources.split(text).length - 1;
const run = (name, request, balance = 100) => {
  const moves = [];
  const store = { balance: () => balance, add: (...move) => moves.push(move) };
  return { ...accounts[name](request, store), moves };
};
const refused = (status, error) => ({ status, error, moves: [] });
const all = ['deposit', 'withdraw', 'transfer'];

await check({
  'each message stands once': () => {
    for (const message of ['who are you?', 'amount must be a whole number above zero', 'amount is too large', 'not enough money', 'to whom?'])
      assert.equal(times(message), 1, `"${message}" stands ${times(message)} times`);
  },
  'each check stands once': () => {
    assert.ok(times('1_000_000') + times('1000000') + times('1e6') === 1, 'the largest amount');
    assert.equal(times('Number.isInteger'), 1, 'Number.isInteger');
  },
  'who asks comes first': () => {
    for (const name of all) assert.deepEqual(run(name, { user: ' ', amount: 'x' }), refused(401, 'who are you?'));
  },
  'then the amount': () => {
    for (const name of all)
      for (const amount of [0, -1, 1.5, 'x', undefined])
        assert.deepEqual(run(name, { user: 'amy', amount }), refused(400, 'amount must be a whole number above zero'));
  },
  'then how large it is': () => {
    for (const name of all) assert.deepEqual(run(name, { user: 'amy', amount: 1_000_001 }), refused(400, 'amount is too large'));
  },
  'then to whom, then the money': () => {
    assert.deepEqual(run('transfer', { user: 'amy', amount: 500, to: '' }), refused(400, 'to whom?'));
    assert.deepEqual(run('transfer', { user: 'amy', amount: 500, to: 'bo' }), refused(409, 'not enough money'));
    assert.deepEqual(run('withdraw', { user: 'amy', amount: 500 }), refused(409, 'not enough money'));
  },
  'amounts as text work as before': () =>
    assert.deepEqual(run('transfer', { user: 'amy', amount: '7', to: 'bo' }), {
      status: 200,
      balance: 100,
      moves: [['amy', -7], ['bo', 7]],
    }),
  'a deposit needs no balance': () =>
    assert.deepEqual(run('deposit', { user: 'amy', amount: 500 }), { status: 200, balance: 100, moves: [['amy', 500]] }),
  'the tests pass': () => assert.equal(ownTests().pass, true),
});
