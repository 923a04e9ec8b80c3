import assert from 'node:assert/strict';
import { check, read, summary } from '../check.mjs';

const text = summary();
/**
 * Whether a line of the file is named, give or take one; `file:8`, `file:8-9`, `file line 8` and
 * the like.
 */
const names = (file, line) =>
  [...text.matchAll(new RegExp(`${file}\\W{0,4}(?:lines? )?(\\d+)(?:\\s*[-\u2013]\\s*(\\d+))?`, 'g'))].some(
    ([, from, to = from]) => Number(from) - 1 <= line && line <= Number(to) + 1,
  );
const verdict = text.trim().split('\n').at(-1);

await check({
  'the charge that nobody waits for is found': () => {
    assert.ok(names('orders\\.js', 3), 'src/orders.js:3 is not named');
    assert.match(text, /await|reject|unhandled|fail/i);
  },
  'the way out of the public folder is found': () => {
    assert.ok(names('files\\.js', 9), 'src/files.js:9 is not named');
    assert.match(text, /travers|outside|prefix|sibling|separator|startsWith|escape/i);
  },
  'the verdict asks for changes': () => assert.match(verdict ?? '', /CHANGES REQUESTED/),
  'nothing was changed': () => {
    assert.match(read('src/orders.js'), /^ {2}charge\(order\.cents\);$/m);
    assert.match(read('src/files.js'), /path\.startsWith\(root\)/);
  },
});
