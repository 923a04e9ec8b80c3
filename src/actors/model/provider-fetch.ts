import { WireError } from './openai/openai-faults.ts';
import { proxyFor, shownProxy, type UsedProxy } from './proxy-choice.ts';

type Fetch = typeof globalThis.fetch;

/** Faults of a connection, which is one to the proxy. */
const unreachable: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
]);

const causesOf = (error: unknown): readonly Error[] =>
  error instanceof Error ? [error, ...causesOf(error.cause)] : [];

/** Other faults are those of the provider behind the proxy. */
const proxyFault = (error: unknown, proxy: UsedProxy): unknown => {
  const who = `the proxy ${shownProxy(proxy)} (${proxy.variable})`;
  for (const each of causesOf(error)) {
    const status = /^Proxy (?:response|Authentication Required) \((\d+)\)/.exec(each.message)?.[1];
    if (status === '407')
      return new WireError('proxy', `${who} refused its user or password (HTTP 407)`);
    if (status !== undefined)
      return new WireError(
        status.startsWith('4') ? 'proxy' : 'network',
        `${who} refused to connect to the provider (HTTP ${status})`,
      );
    const code = 'code' in each ? String(each.code) : '';
    if (unreachable.has(code))
      return new WireError('network', `${who} cannot be reached (${code})`);
  }
  return error;
};

/**
 * The fetch of all calls to providers: through the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY
 * of `env` name. Node's own fetch does so from Node 24 on, and only when it is asked to.
 */
export const createProviderFetch = (env: Readonly<Record<string, string | undefined>>): Fetch => {
  const agents = new Map<string, Promise<Fetch>>();
  const through = async ({ url }: UsedProxy): Promise<Fetch> => {
    const { fetch, ProxyAgent } = await import('undici');
    const dispatcher = new ProxyAgent({ uri: url.href, proxyTunnel: false });
    const proxied = (...[input, init]: Parameters<typeof fetch>) =>
      fetch(input, { ...init, dispatcher });
    return proxied as unknown as Fetch;
  };
  const fetchFor = (proxy: UsedProxy): Promise<Fetch> => {
    const found = agents.get(proxy.url.href) ?? through(proxy);
    agents.set(proxy.url.href, found);
    return found;
  };
  const chosen = (address: string): UsedProxy | null => {
    try {
      return proxyFor(address, env);
    } catch (error) {
      throw new WireError('proxy', error instanceof Error ? error.message : String(error));
    }
  };
  return async (input, init) => {
    const address = input instanceof Request ? input.url : String(input);
    const proxy = chosen(address);
    if (proxy === null) return fetch(input, init);
    const proxied = await fetchFor(proxy);
    try {
      return await proxied(address, init);
    } catch (error) {
      throw proxyFault(error, proxy);
    }
  };
};
