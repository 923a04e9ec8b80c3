import { BlockList, isIP } from 'node:net';
import { addressKind } from '../network/addresses.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The proxy of a request, and the variable that names it. */
export interface UsedProxy {
  readonly url: URL;
  readonly variable: string;
}

/** The name of the variable, in lower case first, as curl has it. */
const named = (name: string, env: Environment): string | undefined =>
  [name.toLowerCase(), name].find((each) => env[each]);

const isLoopback = (host: string): boolean =>
  isIP(host) === 0 ? /^(.*\.)?localhost$/.test(host) : addressKind(host) === 'loopback';

/** `host`, `.host` and `*.host` all mean the host and those below it; `10.0.0.0/8` a network. */
const matches = (entry: string, host: string, port: string): boolean => {
  const [, network = '', bits] = /^([\d.:a-f]+)\/(\d{1,3})$/.exec(entry) ?? [];
  const family = isIP(network) === 6 ? 'ipv6' : 'ipv4';
  if (bits !== undefined && isIP(network) !== 0) {
    const list = new BlockList();
    const isSubnet = Number(bits) <= (family === 'ipv6' ? 128 : 32);
    if (isSubnet) list.addSubnet(network, Number(bits), family);
    return isIP(host) !== 0 && list.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4');
  }
  const isAddress = isIP(entry) !== 0;
  const [, named = entry, at] = isAddress ? [] : (/^\[?(.+?)\]?:(\d+)$/.exec(entry) ?? []);
  if (at !== undefined && at !== port) return false;
  const name = named.replace(/^\*?\./, '').replace(/^\[|\]$/g, '');
  return host === name || (isIP(host) === 0 && host.endsWith(`.${name}`));
};

const isExcepted = (host: string, port: string, env: Environment): boolean => {
  const list = (env[named('NO_PROXY', env) ?? ''] ?? '').toLowerCase().split(/[\s,]+/);
  return list.some((entry) => entry === '*' || (entry !== '' && matches(entry, host, port)));
};

/** @throws Error for a proxy that cannot be used; the message says what to do */
const proxyAt = (variable: string, given: string): UsedProxy => {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}`;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new Error(`${variable} is not the http:// or https:// address of a proxy`);
  return { url, variable };
};

/**
 * The proxy for an address; null: none. This machine is reached without one.
 * @throws Error for a proxy that cannot be used; the message says what to do
 */
export const proxyFor = (address: string, env: Environment): UsedProxy | null => {
  const { protocol, hostname, port } = new URL(address);
  const isTls = protocol === 'https:';
  const variable = named(isTls ? 'HTTPS_PROXY' : 'HTTP_PROXY', env);
  const host = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  if (variable === undefined || isLoopback(host)) return null;
  if (isExcepted(host, port || (isTls ? '443' : '80'), env)) return null;
  return proxyAt(variable, env[variable] ?? '');
};

/** Passwords of the proxies, as they are written and as they are meant. */
export const proxySecrets = (env: Environment): readonly string[] =>
  ['HTTPS_PROXY', 'HTTP_PROXY'].flatMap((name) => {
    const set = env[named(name, env) ?? ''] ?? '';
    const [authority = ''] = set.replace(/^[a-z][a-z0-9+.-]{0,20}:\/\//i, '').split('/', 1);
    const user = authority.slice(0, Math.max(0, authority.lastIndexOf('@')));
    const password = user.includes(':') ? user.slice(user.indexOf(':') + 1) : '';
    if (password === '') return [];
    try {
      return [password, decodeURIComponent(password)];
    } catch {
      return [password];
    }
  });

/** Without user and password. */
export const shownProxy = ({ url }: UsedProxy): string => url.origin;
