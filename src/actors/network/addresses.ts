import { type LookupAddress, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';

const blockList = (...networks: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
};

/** No receiver is there: this host by another name, link-local with metadata services, multicast. */
const neverAllowed = blockList(
  '0.0.0.0/8',
  '169.254.0.0/16',
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/128',
  'fe80::/10',
  'ff00::/8',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  'fd00:42::42/128',
  // Link-local addresses by way of 6to4.
  '2002:a9fe::/32',
);
const loopback = blockList('127.0.0.0/8', '::1/128');
/** Addresses of this machine, of a local network and of tests, and those that stand for another one. */
const privateOnly = {
  ipv4: blockList(
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '172.16.0.0/12',
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.88.99.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
  ),
  /** Only 2000::/3 is public. A list of its own: `::/3` would hold every IPv4 address as well. */
  ipv6: blockList(
    '::/3',
    '2001::/23',
    '2001:db8::/32',
    '2002::/16',
    '3fff::/20',
    '4000::/2',
    '8000::/1',
  ),
};

/** The name leads to no address that may be called. The message says which, and what to do. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefusedError';
}

/** The IPv4 address that an IPv6 address reaches through NAT64 (RFC 6052). */
const behindNat64 = (address: string): string | null => {
  const [, high = '0', low] =
    /^64:ff9b::(?:([0-9a-f]+):)?([0-9a-f]+)$/.exec(canonicalAddress(address)) ?? [];
  if (low === undefined) return null;
  const bits = Number.parseInt(high, 16) * 0x10000 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join('.');
};

/** One way to write each address: no leading zeros, no upper case, the longest run of zeros as ::. */
export const canonicalAddress = (address: string): string =>
  isIP(address) === 6 ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;

/**
 * `never`: this host by another name, link-local, multicast, metadata services. `private` also has
 * IPv6 addresses that stand for an IPv4 address, but for NAT64, which counts as what it reaches.
 * `loopback` also has the public addresses of this machine: what comes from itself passes no firewall.
 */
export const addressKind = (
  address: string,
  interfaces = networkInterfaces,
): 'public' | 'private' | 'loopback' | 'never' => {
  const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
  const reached = family === 'ipv6' ? behindNat64(address) : null;
  if (reached !== null) return addressKind(reached, interfaces);
  if (neverAllowed.check(address, family)) return 'never';
  if (loopback.check(address, family)) return 'loopback';
  if (privateOnly[family].check(address, family)) return 'private';
  const own = Object.values(interfaces()).flatMap((found) => found ?? []);
  const canonical = canonicalAddress(address);
  return own.some((each) => canonicalAddress(each.address) === canonical) ? 'loopback' : 'public';
};

/** true: also private addresses; `loopback`: also this machine. */
export type AllowPrivate = boolean | 'loopback';

const isAllowed = (address: string, allowPrivate: AllowPrivate): boolean => {
  const kind = addressKind(address);
  if (kind === 'public' || kind === 'never') return kind === 'public';
  return allowPrivate === true || (kind === 'loopback' && allowPrivate === 'loopback');
};

const refusedAddress = (host: string, addresses: readonly string[], allowPrivate: AllowPrivate) => {
  const place = addresses.includes(host) ? host : `${host} (${addresses.join(', ')})`;
  const remedy =
    allowPrivate !== false
      ? 'name another address'
      : 'if it is a receiver of yours, set allow_private to true';
  return new AddressRefusedError(`${place} is not a public address; ${remedy}`);
};

/** @throws AddressRefusedError for an address that is written in the URL, which nobody looks up */
export const requireAllowedHost = ({ hostname }: URL, allowPrivate: AllowPrivate): void => {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && !isAllowed(host, allowPrivate))
    throw refusedAddress(host, [host], allowPrivate);
};

/**
 * Looks a name up once, for `http.request`: the connection goes to an address that was checked,
 * whatever the name means a moment later.
 */
export const createAllowedLookup =
  (allowPrivate: AllowPrivate): LookupFunction =>
  (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found: readonly LookupAddress[]) => {
      if (error !== null) return callback(error, []);
      const allowed = found.filter(({ address }) => isAllowed(address, allowPrivate));
      const [first] = allowed;
      if (first === undefined) {
        const addresses = found.map(({ address }) => address);
        return callback(refusedAddress(hostname, addresses, allowPrivate), []);
      }
      if (options.all === true) return callback(null, [...allowed]);
      return callback(null, first.address, first.family);
    });
  };

/** With its port, where it has one. */
export const hostOf = (url: string): string => new URL(url).host;
