import assert from 'node:assert/strict';
import { check, load, ownTests } from '../check.mjs';

const numbers = (count) => Array.from({ length: count }, (_, index) => index + 1);
const page = async (count, options) => (await load('src/paginate.js')).paginate(numbers(count), options);

await check({
  'a page that is not full is shown': async () =>
    assert.deepEqual(await page(25, { page: 3 }), { items: [21, 22, 23, 24, 25], page: 3, pages: 3, hasNext: false }),
  'there is a next page before it': async () => assert.equal((await page(25, { page: 2 })).hasNext, true),
  'full pages are counted once': async () => assert.equal((await page(30)).pages, 3),
  'an empty list has one empty page': async () =>
    assert.deepEqual(await page(0), { items: [], page: 1, pages: 1, hasNext: false }),
  'a page before the first is the first': async () =>
    assert.deepEqual(await page(3, { page: -4, size: 2 }), { items: [1, 2], page: 1, pages: 2, hasNext: true }),
  'a page after the last is the last': async () =>
    assert.deepEqual(await page(3, { page: 9, size: 2 }), { items: [3], page: 2, pages: 2, hasNext: false }),
  'the tests pass, and there are more': () => {
    const { pass, count } = ownTests();
    assert.ok(pass && count > 1, `${count} tests, ${pass ? 'passed' : 'failed'}`);
  },
});
