import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadSettings } from '../src/settings.js';

const defaults = { debug: false, server: { maxClients: 10, hosts: ['a'] } };

test('variables override by path and type', () => {
  const env = { APP_DEBUG: 'true', APP_SERVER__MAX_CLIENTS: '5', APP_SERVER__HOSTS: 'b, c' };

  assert.deepEqual(loadSettings(defaults, env), { debug: true, server: { maxClients: 5, hosts: ['b', 'c'] } });
});

test('all problems at once', () => {
  assert.throws(() => loadSettings(defaults, { APP_X: '1', APP_DEBUG: 'no' }), {
    message: 'APP_DEBUG: expected true or false\nAPP_X: no such setting',
  });
});
