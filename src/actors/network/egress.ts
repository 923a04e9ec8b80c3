import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { connect, isIP, type Server, type Socket } from 'node:net';
import { messageOf } from '../../machines/message-of.ts';
import { withDeadline } from '../process/deadline.ts';
import type { Egress, Network, OpenEgress } from '../sandbox/port.ts';
import { type NetworkAccess, normalHost } from './access.ts';
import { addressKind } from './addresses.ts';
import { createProxy, type Endpoint, joinSockets } from './proxy.ts';

/** A network namespace whose only ways out are sockets of ours. */
interface NetworkNamespace {
  readonly within: OpenEgress['within'];
  /** Listens inside, on a free port of 127.0.0.1. */
  readonly proxy: Server;
  readonly proxyPort: number;
  /** Listen inside, on the ports that were wanted. */
  readonly mirrors: ReadonlyMap<number, Server>;
  close(): void;
}

/** From util-linux, as `nsenter`: the kernel ends these processes first when memory is short. */
const choom = ['/usr/bin/choom', '-n', '1000', '--'] as const;
const nsenter = '/usr/bin/nsenter';
const openMs = 20_000;

/**
 * Runs inside. A socket belongs to the namespace that it was made in, whoever has it: so this
 * program listens, hands the sockets over and ends. Port 0 is the proxy.
 */
const listenInside = `
const { createServer } = require('node:net');
const listen = (port, hosts) => {
  const server = createServer();
  server.once('error', (error) => {
    if (hosts.length > 1) return listen(port, hosts.slice(1));
    process.send({ failed: error.message }, () => process.exit(1));
  });
  server.listen(port, hosts[0], () =>
    process.send({ pid: process.pid, wanted: port, port: server.address().port }, server),
  );
};
listen(0, ['127.0.0.1']);
for (const port of process.argv.slice(1)) listen(Number(port), ['::', '127.0.0.1']);
process.on('message', () => process.exit(0));
`;

interface Listening {
  readonly pid: number;
  readonly wanted: number;
  readonly port: number;
}

/**
 * No process stays in it: it lasts as long as this process has it open. @throws an error that says
 * what to install
 */
const openNamespace = (bwrap: string, ports: readonly number[]): Promise<NetworkNamespace> => {
  if (!existsSync(nsenter))
    throw new Error(
      `a list of hosts needs ${nsenter}; install util-linux, or set network to false`,
    );
  return withDeadline(openMs, undefined, 'the network namespace', async (signal) => {
    const child = spawn(
      bwrap,
      [
        '--unshare-user',
        '--unshare-net',
        '--die-with-parent',
        '--dev-bind',
        '/',
        '/',
        // For a provider of this machine that is at one of the first 1024 ports.
        '--cap-add',
        'CAP_NET_BIND_SERVICE',
        '--',
        process.execPath,
        '-e',
        listenInside,
        ...ports.map(String),
      ],
      { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], env: {}, cwd: '/', signal },
    );
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = `${said}${text}`.slice(0, 2_000);
    });
    const held: number[] = [];
    const servers = new Map<number, { readonly server: Server; readonly port: number }>();
    const close = (): void => {
      for (const fd of held.splice(0)) closeSync(fd);
      for (const { server } of servers.values()) server.close();
    };
    try {
      const pid = await new Promise<number>((resolve, reject) => {
        child.once('error', reject);
        child.once('exit', () => reject(new Error(said.trim().split('\n')[0] || 'it ended')));
        child.on('message', (told: Listening | { failed: string }, server) => {
          if ('failed' in told) return reject(new Error(told.failed));
          servers.set(told.wanted, { server: server as Server, port: told.port });
          if (servers.size === ports.length + 1) resolve(told.pid);
        });
      });
      for (const kind of ['user', 'net']) held.push(openSync(`/proc/${pid}/ns/${kind}`, 'r'));
      child.removeAllListeners('exit').send('taken');
      await once(child, 'exit', { signal });
      const [user, net] = held.map((fd) => `/proc/${process.pid}/fd/${fd}`);
      const proxy = servers.get(0);
      if (proxy === undefined) throw new Error('it has no proxy');
      servers.delete(0);
      return {
        within: (argv) => [
          ...choom,
          ...([nsenter, `--user=${user}`, `--net=${net}`, '--preserve-credentials', '--'] as const),
          ...argv,
        ],
        proxy: proxy.server,
        proxyPort: proxy.port,
        mirrors: new Map([...servers].map(([wanted, { server }]) => [wanted, server])),
        close: () => {
          servers.set(0, proxy);
          close();
        },
      };
    } catch (error) {
      child.kill('SIGKILL');
      close();
      throw new Error(`no network namespace for a list of hosts: ${messageOf(error)}`);
    }
  });
};

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
