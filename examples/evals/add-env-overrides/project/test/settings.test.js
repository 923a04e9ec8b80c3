import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadSettings } from '../src/settings.js';

test('the defaults', () => {
  assert.deepEqual(loadSettings({ server: { port: 80 } }, {}), { server: { port: 80 } });
});
