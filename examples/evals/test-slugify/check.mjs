import assert from 'node:assert/strict';
import { check, ownTests, ownTestsWith, read } from '../check.mjs';

const path = 'src/slugify.js';
const original = "/** A name as it may stand in a URL: lower case, words joined by single dashes, at most 40 characters. */\nexport const slugify = (name) => {\n  const words = name\n    .normalize('NFKD')\n    .replace(/\\p{M}/gu, '')\n    .toLowerCase()\n    .replace(/[^a-z0-9]+/g, '-')\n    .replace(/^-|-$/g, '');\n  if (words === '') return 'untitled';\n  return words.slice(0, 40).replace(/-$/, '');\n};\n";
const without = (find, put = '') => () => {
  const text = original.replace(find, () => put);
  assert.notEqual(text, original);
  assert.equal(ownTestsWith(path, text).pass, false, 'the tests do not notice');
};

await check({
  'the code is as it was': () => assert.equal(read(path), original),
  'the tests pass': () => {
    const { pass, count } = ownTests();
    assert.ok(pass && count > 0, `${count} tests, ${pass ? 'passed' : 'failed'}`);
  },
  'another code that keeps the promises passes': () => {
    const other = original.replace("replace(/[^a-z0-9]+/g, '-')", "split(/[^a-z0-9]+/).join('-')");
    assert.notEqual(other, original);
    assert.equal(ownTestsWith(path, other).pass, true);
  },
  'case is noticed': without("    .toLowerCase()\n"),
  'accents are noticed': without("    .replace(/\\p{M}/gu, '')\n"),
  'separators in a row are noticed': without('[^a-z0-9]+/g', '[^a-z0-9]/g'),
  'separators at the ends are noticed': without("    .replace(/^-|-$/g, '')"),
  'digits are noticed': without('[^a-z0-9]+', '[^a-z]+'),
  'the limit is noticed': without('.slice(0, 40)'),
  'a limit of 39 is noticed': without('40)', '39)'),
  'a cut at a dash is noticed': without(".replace(/-$/, '');", ';'),
  'an empty slug is noticed': without("  if (words === '') return 'untitled';\n"),
});
