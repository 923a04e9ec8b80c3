import assert from 'node:assert/strict';
import { check, load, ownTests } from '../check.mjs';

const { loadSettings } = await load('src/settings.js');
const defaults = () => ({ name: 'app', debug: false, server: { port: 80, maxClients: 10, hosts: ['a'] } });
const settings = (env) => loadSettings(defaults(), env);
const problems = (env) => {
  try {
    settings(env);
  } catch (error) {
    return error.message.split('\n');
  }
  return [];
};

await check({
  'a string': () => assert.equal(settings({ APP_NAME: ' other ' }).name, ' other '),
  'a number below a section, in camel case': () =>
    assert.deepEqual(settings({ APP_SERVER__MAX_CLIENTS: '25' }).server, { port: 80, maxClients: 25, hosts: ['a'] }),
  'numbers with sign and point': () => assert.equal(settings({ APP_SERVER__PORT: '-1.5' }).server.port, -1.5),
  'a boolean': () => assert.equal(settings({ APP_DEBUG: 'true' }).debug, true),
  'a list': () => assert.deepEqual(settings({ APP_SERVER__HOSTS: 'b, c ,d' }).server.hosts, ['b', 'c', 'd']),
  'an empty list': () => assert.deepEqual(settings({ APP_SERVER__HOSTS: '' }).server.hosts, []),
  'other variables do not matter': () => assert.deepEqual(settings({ PATH: '/bin', APPLE: '1' }), defaults()),
  'an empty number does not fit': () => assert.deepEqual(problems({ APP_SERVER__PORT: '' }), ['APP_SERVER__PORT: expected a number']),
  'hexadecimal is no decimal number': () => assert.equal(problems({ APP_SERVER__PORT: '0x10' }).length, 1),
  'Infinity is not finite': () => assert.equal(problems({ APP_SERVER__PORT: 'Infinity' }).length, 1),
  'all problems in order of name': () =>
    assert.deepEqual(problems({ APP_ZZZ: '1', APP_SERVER__PORT: 'x', APP_DEBUG: 'yes', APP_SERVER: 'x' }), [
      'APP_DEBUG: expected true or false',
      'APP_SERVER: no such setting',
      'APP_SERVER__PORT: expected a number',
      'APP_ZZZ: no such setting',
    ]),
  'the defaults stay': () => {
    const given = defaults();
    loadSettings(given, { APP_SERVER__PORT: '1', APP_SERVER__HOSTS: 'x' });
    assert.deepEqual(given, defaults());
  },
  'the tests pass, and there are more': () => {
    const { pass, count } = ownTests();
    assert.ok(pass && count > 1, `${count} tests, ${pass ? 'passed' : 'failed'}`);
  },
});
