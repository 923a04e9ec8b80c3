import { expect, test } from 'vitest';
import {
  type AllowPrivate,
  createAllowedLookup,
  requireAllowedHost,
} from '../../../src/actors/notify/allowed-address.ts';

/** Where a connection to a host would go; an address is looked up without a network. */
const lookedUp = (host: string, allowPrivate: AllowPrivate) =>
  new Promise((resolve, reject) =>
    createAllowedLookup(allowPrivate)(host, {}, (error, address) =>
      error === null ? resolve(address) : reject(error),
    ),
  );

test.each([
  ['a public IPv4 address', '93.184.216.34', false],
  ['the highest public IPv4 address of a class', '223.255.255.254', false],
  ['a public IPv6 address', '2606:2800:220:1::1', false],
  ['an address of a local network', '192.168.1.20', true],
  ['an IPv6 address of a local network', 'fd12::1', true],
] as const)('%s may be called', async (_, address, allowPrivate) => {
  const host = address.includes(':') ? `[${address}]` : address;

  expect(() => requireAllowedHost(new URL(`https://${host}/`), allowPrivate)).not.toThrow();
  expect(await lookedUp(address, allowPrivate)).toBe(address);
});

test('an address of a local network is refused unless it is allowed', async () => {
  for (const address of ['192.168.1.20', '10.0.0.1', '::ffff:8.8.8.8', 'fd12::1'])
    await expect(lookedUp(address, false)).rejects.toThrow('is not a public address');
});
