import type { IncomingMessage } from 'node:http';
import { rawValues } from '../gate.ts';

/** The one origin of the hub's page. */
export const hubOrigin = (port: number): string =>
  port === 80 ? 'http://localhost' : `http://localhost:${port}`;

export type Admission =
  | { readonly kind: 'admitted' }
  /** To the same path at the hub's origin. */
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'refused'; readonly check: string };

const namesOf = (port: number, name: string): readonly string[] =>
  port === 80 ? [name, `${name}:80`] : [`${name}:${port}`];

const refused = (check: string): Admission => ({ kind: 'refused', check });

/**
 * Stops DNS rebinding and what other pages send to this machine, as the gate of a server does
 * (`gate.ts`). `isPage`: the path is that of a page, which links of other sites may lead to.
 */
export const admit = (request: IncomingMessage, port: number, isPage: boolean): Admission => {
  const [host, ...others] = rawValues(request, 'host').map((name) => name.toLowerCase());
  const isOwn = host !== undefined && namesOf(port, 'localhost').includes(host);
  const isAlias =
    host !== undefined && ['127.0.0.1', '[::1]'].some((name) => namesOf(port, name).includes(host));
  if (others.length > 0 || !(isOwn || isAlias)) return refused('the Host header');
  if (!(request.url ?? '').startsWith('/')) return refused('the request target');
  const origins = rawValues(request, 'origin');
  if (origins.length > 1 || (origins[0] !== undefined && origins[0] !== hubOrigin(port)))
    return refused('the Origin header');
  const {
    'sec-fetch-site': site,
    'sec-fetch-mode': mode,
    'sec-fetch-dest': dest,
  } = request.headers;
  const opensPage =
    isPage && request.method === 'GET' && mode === 'navigate' && dest === 'document';
  if (site !== undefined && site !== 'same-origin' && !opensPage && !(isPage && site === 'none'))
    return refused('the Sec-Fetch-Site header');
  if (isOwn) return { kind: 'admitted' };
  return isPage && request.method === 'GET' ? { kind: 'elsewhere' } : refused('the Host header');
};
