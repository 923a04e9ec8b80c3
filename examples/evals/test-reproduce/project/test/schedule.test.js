import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextRun } from '../src/schedule.js';

test('none is left after the window', () => {
  assert.equal(nextRun({ from: 0, to: 100, everyMs: 50 }, 200), null);
});
