import { expect, test } from 'vitest';
import { isAtForge } from '../../../src/actors/forge/remote.ts';

test.each([
  ['https://github.com/acme/shop.git', 'https://api.github.com', true],
  ['https://acme.ghe.com/acme/shop.git', 'https://api.acme.ghe.com', true],
  ['https://ghe.example/acme/shop.git', 'https://ghe.example/api/v3', true],
  ['https://ghe.example:8443/acme/shop.git', 'https://ghe.example/api/v3', false],
  ['http://github.com/acme/shop.git', 'https://api.github.com', false],
  ['https://github.com.evil.example/a/b.git', 'https://api.github.com', false],
  ['https://example/a/b.git', 'https://api.example/v1', false],
  ['https://github.com@evil.example/a/b.git', 'https://api.github.com', false],
  ['ssh://git@github.com/acme/shop.git', 'https://api.github.com', false],
  ['git@github.com:acme/shop.git', 'https://api.github.com', false],
])('%s with the API %s: %s', (remote, apiUrl, isThere) => {
  expect(isAtForge(remote, apiUrl)).toBe(isThere);
});
