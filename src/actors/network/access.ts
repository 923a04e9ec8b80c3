import { BlockList, isIP } from 'node:net';
import { addressKind } from './addresses.ts';

/**
 * `false`: no network. `true`: the whole network of the machine, loopback included. A list: these
 * hosts, through our proxy; `*.example.com` is every host below, `*` every public host.
 */
export type NetworkAccess = boolean | readonly string[];

export const publicHosts: NetworkAccess = ['*'];

const hostName = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/;
const cidr = /^([0-9a-f:.]+)\/(\d{1,3})$/;

/** A host in the one form that is compared; null for what is none. */
export const normalHost = (text: string): string | null => {
  const host = text
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/(?<=[^.])\.$/, '');
  if (host.includes('%')) return null;
  return isIP(host) !== 0 || hostName.test(host) ? host : null;
};

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 4 ? 'ipv4' : 'ipv6');

const isNetwork = (text: string): boolean => {
  const [, address = '', bits] = cidr.exec(text.toLowerCase()) ?? [];
  return isIP(address) !== 0 && Number(bits) <= (isIP(address) === 4 ? 32 : 128);
};

/** Whether a text may be an entry of a list: a host, `*.` and a host, an address or a network. */
export const isHostEntry = (text: string): boolean =>
  text === '*' || isNetwork(text) || normalHost(text.replace(/^\*\./, '')) !== null;

/** The entries of a list as two questions. */
export const createHostRules = (entries: readonly string[]) => {
  const [names, below] = [new Set<string>(), [] as string[]];
  const addresses = new BlockList();
  for (const entry of entries) {
    const [, network, bits] = cidr.exec(entry.toLowerCase()) ?? [];
    const host = normalHost(entry);
    if (network !== undefined) addresses.addSubnet(network, Number(bits), familyOf(network));
    else if (entry.startsWith('*.')) below.push(`.${normalHost(entry.slice(2))}`);
    else if (host !== null && isIP(host) !== 0) addresses.addAddress(host, familyOf(host));
    else names.add(host ?? entry);
  }
  const isListed = (address: string): boolean =>
    addresses.check(address, familyOf(address)) ||
    (names.has('localhost') && addressKind(address) === 'loopback');
  return {
    /** `host`: as `normalHost` gives it. */
    names: (host: string): boolean =>
      names.has('*') ||
      (isIP(host) === 0
        ? names.has(host) || below.some((ending) => host.endsWith(ending))
        : isListed(host)),
    /** A name may lead to a private address only where that address is listed, too. */
    reaches: (address: string): boolean => addressKind(address) === 'public' || isListed(address),
  };
};

/** Entries that lead nowhere but where the list leads. */
const within = (entries: readonly string[], list: readonly string[]): readonly string[] => {
  const { names, reaches } = createHostRules(list);
  const endings = list.filter((each) => each.startsWith('*.')).map((each) => each.slice(1));
  const isHostOf = (host: string): boolean =>
    host !== 'localhost' && names(host) && (isIP(host) === 0 || reaches(host));
  return entries.filter((entry) => {
    const host = normalHost(entry);
    if (list.includes(entry) || (host !== null && isHostOf(host))) return true;
    return (
      entry.startsWith('*.') && (list.includes('*') || endings.some((end) => entry.endsWith(end)))
    );
  });
};

/** Access that both allow. */
export const narrowAccess = (one: NetworkAccess, other: NetworkAccess): NetworkAccess => {
  if (one === false || other === false) return false;
  if (one === true || other === true) return one === true ? other : one;
  return [...new Set([...within(one, other), ...within(other, one)])];
};
