import type { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import {
  type AllowPrivate,
  addressKind,
  createAllowedLookup,
  requireAllowedHost,
} from '../../../src/actors/network/addresses.ts';

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
  ['a public IPv4 address by way of NAT64', '64:ff9b::5db8:d822', false],
  ['an address of a local network', '192.168.1.20', true],
  ['an IPv6 address of a local network', 'fd12::1', true],
] as const)('%s may be called', async (_, address, allowPrivate) => {
  const host = address.includes(':') ? `[${address}]` : address;

  expect(() => requireAllowedHost(new URL(`https://${host}/`), allowPrivate)).not.toThrow();
  expect(await lookedUp(address, allowPrivate)).toBe(address);
});

test('an address of a local network is refused unless it is allowed', async () => {
  for (const address of ['192.168.1.20', '10.0.0.1', '::ffff:8.8.8.8', 'fd12::1', '64:ff9b::a00:1'])
    await expect(lookedUp(address, false)).rejects.toThrow('is not a public address');
});

test('addresses of metadata services are refused also where private ones are allowed', async () => {
  const hosts = ['169.254.169.254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '2002:a9fe::1'];
  for (const address of hosts)
    await expect(lookedUp(address, true)).rejects.toThrow('is not a public address');
});

test('a public address of this machine is this machine, however it is written', () => {
  const interfaces = () =>
    ({
      eth0: [{ address: '93.184.216.34' }, { address: '2606:2800:220:1::7' }],
    }) as unknown as ReturnType<typeof networkInterfaces>;

  for (const own of ['93.184.216.34', '2606:2800:220:1::7', '2606:2800:0220:1:0:0:0:7'])
    expect(addressKind(own, interfaces), own).toBe('loopback');
  expect(addressKind('64:ff9b::5db8:d822', interfaces)).toBe('loopback');
  for (const other of ['93.184.216.35', '2606:2800:220:1::8'])
    expect(addressKind(other, interfaces), other).toBe('public');
});
