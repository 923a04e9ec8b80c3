import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import type { Server } from 'node:net';
import { messageOf } from '../../machines/message-of.ts';
import { withDeadline } from '../process/deadline.ts';
import type { OpenEgress } from '../sandbox/port.ts';

/** A network namespace whose only ways out are sockets of ours. */
export interface NetworkNamespace {
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
export const openNamespace = (
  bwrap: string,
  ports: readonly number[],
): Promise<NetworkNamespace> => {
  if (!existsSync(nsenter))
    throw new Error(
      `a list of hosts needs ${nsenter}; install util-linux, or set network to false`,
    );
  return withDeadline(openMs, undefined, 'the network namespace', async (signal) => {
    const child = spawn(
      bwrap,
      [
        ...['--unshare-user', '--unshare-net', '--die-with-parent', '--dev-bind', '/', '/'],
        // For a provider of this machine that is at one of the first 1024 ports.
        ...['--cap-add', 'CAP_NET_BIND_SERVICE'],
        ...['--', process.execPath, '-e', listenInside, ...ports.map(String)],
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
