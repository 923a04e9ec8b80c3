import assert from 'node:assert/strict';
import { check, load, ownTests } from '../check.mjs';

/** A cache whose loads end when the check says so. */
const held = async (options) => {
  const { createCache } = await load('src/cache.js');
  const loads = [];
  const cache = createCache((key) => new Promise((resolve, reject) => loads.push({ key, resolve, reject })), options);
  return { cache, loads };
};
const settle = () => new Promise((resolve) => setImmediate(resolve));

await check({
  'one load for all who ask': async () => {
    const { cache, loads } = await held();
    const asked = [cache.get('a'), cache.get('a'), cache.get('a')];
    await settle();
    assert.equal(loads.length, 1);
    loads[0].resolve('value');
    assert.deepEqual(await Promise.all(asked), ['value', 'value', 'value']);
  },
  'other keys do not wait': async () => {
    const { cache, loads } = await held();
    void cache.get('a');
    void cache.get('b');
    await settle();
    assert.deepEqual(loads.map(({ key }) => key), ['a', 'b']);
  },
  'an error reaches all who waited and is not remembered': async () => {
    const { cache, loads } = await held();
    const asked = Promise.allSettled([cache.get('a'), cache.get('a')]);
    await settle();
    for (const { reject } of loads) reject(new Error('down'));
    assert.deepEqual((await asked).map(({ status }) => status), ['rejected', 'rejected']);
    const again = cache.get('a');
    await settle();
    assert.equal(loads.length, 2);
    loads[1].resolve('up');
    assert.equal(await again, 'up');
  },
  'what is deleted during its load is not kept': async () => {
    const { cache, loads } = await held();
    const first = cache.get('a');
    await settle();
    cache.delete('a');
    loads[0].resolve('old');
    await first;
    const second = cache.get('a');
    await settle();
    assert.equal(loads.length, 2);
    loads[1].resolve('new');
    assert.equal(await second, 'new');
  },
  'an older load that ends later does not replace a newer one': async () => {
    const { cache, loads } = await held();
    const first = cache.get('a');
    await settle();
    cache.delete('a');
    const second = cache.get('a');
    await settle();
    assert.equal(loads.length, 2);
    loads[1].resolve('new');
    await second;
    loads[0].resolve('old');
    await first;
    assert.equal(await cache.get('a'), 'new');
  },
  'the time to live begins at the end of the load': async () => {
    let time = 0;
    const { cache, loads } = await held({ ttlMs: 10, now: () => time });
    const first = cache.get('a');
    await settle();
    time = 8;
    loads[0].resolve('value');
    await first;
    time = 17;
    await cache.get('a');
    assert.equal(loads.length, 1);
    time = 18;
    void cache.get('a');
    await settle();
    assert.equal(loads.length, 2);
  },
  'the tests pass, and there are more': () => {
    const { pass, count } = ownTests();
    assert.ok(pass && count > 1, `${count} tests, ${pass ? 'passed' : 'failed'}`);
  },
});
