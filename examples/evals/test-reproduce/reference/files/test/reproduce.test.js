import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextRun, runTimes } from '../src/schedule.js';

test('a window ends before its end', () => {
  assert.deepEqual(runTimes({ from: 0, to: 100, everyMs: 50 }), [0, 50]);
});

test('a run that is due now is the next one', () => {
  assert.equal(nextRun({ from: 0, to: 100, everyMs: 50 }, 0), 0);
});
