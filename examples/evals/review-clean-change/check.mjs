import assert from 'node:assert/strict';
import { check, read, summary } from '../check.mjs';

const text = summary();

await check({
  'the verdict approves': () => assert.match(text.trim().split('\n').at(-1) ?? '', /APPROVED/),
  'no change is asked for': () => assert.doesNotMatch(text, /CHANGES REQUESTED/),
  'it says what was looked at': () => assert.match(text, /backoff/),
  'nothing was changed': () => assert.match(read('src/backoff.js'), /const longestMs = 60_000;/),
});
