import { connect, isIP, type Socket } from 'node:net';
import type { Egress, Network, OpenEgress } from '../sandbox/port.ts';
import { type NetworkAccess, normalHost } from './access.ts';
import { addressKind } from './addresses.ts';
import { type NetworkNamespace, openNamespace } from './namespace.ts';
import { createProxy, type Endpoint, joinSockets } from './proxy.ts';

export interface EgressOptions {
  readonly hosts: readonly string[];
  /** Our own port for MCP servers, and the provider of an assistant. */
  readonly always: readonly Endpoint[];
  readonly record: (seen: Endpoint & { readonly allowed: boolean }) => void;
}

/** A namespace that nobody uses for so long is closed; the next command opens a new one. */
const unusedMs = 5 * 60_000;
const mirrorIdleMs = 30 * 60_000;
const mirrorConnections = 64;
const seenAtMost = 200;

const isLoopback = (host: string): boolean =>
  host === 'localhost' || (isIP(host) !== 0 && addressKind(host) === 'loopback');

/** Programs reach the loopback of their namespace directly, unless the list means the machine's. */
const withoutProxy = (hosts: readonly string[]): string => {
  const listed = hosts.map((entry) => normalHost(entry) ?? entry);
  return ['localhost', '127.0.0.1', '::1'].filter((host) => !listed.includes(host)).join(',');
};

const proxyVariables = (
  port: number,
  hosts: readonly string[],
): Readonly<Record<string, string>> => {
  const named = {
    ...Object.fromEntries(
      ['http_proxy', 'https_proxy', 'all_proxy'].map((name) => [name, `http://127.0.0.1:${port}`]),
    ),
    no_proxy: withoutProxy(hosts),
  };
  return {
    ...named,
    ...Object.fromEntries(Object.entries(named).map(([name, to]) => [name.toUpperCase(), to])),
    // The fetch of Node ignores the others.
    NODE_USE_ENV_PROXY: '1',
  };
};

/** Passes on what connects to a port inside to the same port of this machine. @returns ends it */
const mirror = ({ mirrors }: NetworkNamespace, always: readonly Endpoint[]): (() => void) => {
  const sockets = new Set<Socket>();
  for (const { host, port } of always) {
    const inside = isLoopback(host) ? mirrors.get(port) : undefined;
    if (inside === undefined || inside.listenerCount('connection') > 0) continue;
    inside.maxConnections = mirrorConnections;
    inside.on('connection', (socket) => {
      socket.allowHalfOpen = true;
      sockets.add(socket.once('close', () => sockets.delete(socket)));
      joinSockets(socket, connect({ host, port, allowHalfOpen: true }), mirrorIdleMs);
    });
  }
  return () => {
    for (const socket of sockets) socket.destroy();
  };
};

type ClosableEgress = Egress & { close(): void };

/** Opens the namespace and its proxy when a command needs it. */
const createEgress = (
  { hosts, always, record }: EgressOptions,
  onClosed: () => void,
): ClosableEgress => {
  let opening: ReturnType<typeof start> | null = null;
  let users = 0;

  const start = async (bwrap: string) => {
    const ports = always.filter(({ host }) => isLoopback(host)).map(({ port }) => port);
    const namespace = await openNamespace(bwrap, [...new Set(ports)]);
    const proxy = createProxy({ hosts, always, record });
    await proxy.listenOn(namespace.proxy);
    const endMirrors = mirror(namespace, always);
    return {
      within: namespace.within,
      env: proxyVariables(namespace.proxyPort, hosts),
      close: () => {
        proxy.close();
        endMirrors();
        namespace.close();
      },
    };
  };
  const close = (): void => {
    clearTimeout(unused);
    const closing = opening;
    opening = null;
    onClosed();
    void closing?.then(
      (opened) => opened.close(),
      () => {},
    );
  };
  const leave = (): void => {
    users -= 1;
    if (users === 0) unused = setTimeout(close, unusedMs).unref();
  };

  let unused = setTimeout(close, unusedMs).unref();
  return {
    open: async (bwrap): Promise<OpenEgress> => {
      clearTimeout(unused);
      users += 1;
      try {
        opening ??= start(bwrap);
        const { within, env } = await opening;
        return { within, env, release: leave };
      } catch (error) {
        opening = null;
        leave();
        throw error;
      }
    },
    close,
  };
};

/** The networks of an attempt: one for each who uses it, and each list of hosts. */
export interface Egresses {
  /** `user`: those of different users do not reach each other's loopback. */
  of(user: string, access: NetworkAccess, always?: readonly Endpoint[]): Network;
  close(): void;
}

/** Records each host, port and decision once. `onClosed`: nothing of it is open any more. */
export const createEgresses = (
  record: EgressOptions['record'],
  onClosed: () => void = () => {},
): Egresses => {
  const open = new Map<string, ClosableEgress>();
  const seen = new Set<string>();
  const recordOnce: EgressOptions['record'] = (one) => {
    const key = JSON.stringify(one);
    if (seen.has(key) || seen.size >= seenAtMost) return;
    seen.add(key);
    record(one);
  };
  return {
    of: (user, access, always = []) => {
      if (typeof access === 'boolean') return access;
      if (access.length + always.length === 0) return false;
      const key = JSON.stringify([user, access, always]);
      const known = open.get(key);
      if (known !== undefined) return known;
      const egress = createEgress({ hosts: access, always, record: recordOnce }, () => {
        open.delete(key);
        if (open.size === 0) onClosed();
      });
      open.set(key, egress);
      return egress;
    },
    close: () => {
      for (const egress of [...open.values()]) egress.close();
    },
  };
};
