import { type LookupAddress, lookup } from 'node:dns';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { connect, isIP, type LookupFunction, type Server, type Socket } from 'node:net';
import { messageOf } from '../../machines/message-of.ts';
import { createSerialQueue } from '../process/serial-queue.ts';
import { createHostRules, normalHost } from './access.ts';

export interface Endpoint {
  /** As `normalHost` gives it. */
  readonly host: string;
  readonly port: number;
}

export interface ProxyOptions {
  readonly hosts: readonly string[];
  /** Reachable at whatever address they have. */
  readonly always: readonly Endpoint[];
  /** Called for each request that names a host. */
  readonly record: (seen: Endpoint & { readonly allowed: boolean }) => void;
  readonly resolve?: typeof lookup;
  readonly limits?: Partial<ProxyLimits>;
}

interface ProxyLimits {
  readonly connections: number;
  /** Of the header of a request (ms). */
  readonly headerMs: number;
  readonly resolveMs: number;
  readonly connectMs: number;
  /** A connection that is silent in both directions is ended. */
  readonly idleMs: number;
}

const defaultLimits: ProxyLimits = {
  connections: 128,
  headerMs: 10_000,
  resolveMs: 10_000,
  connectMs: 15_000,
  // A provider may think for long before it answers.
  idleMs: 30 * 60_000,
};
const headerBytes = 16 * 1024;
const requestMs = 10 * 60_000;
const keepAliveMs = 5_000;

class RefusedError extends Error {
  readonly status: 400 | 403 | 502 | 504;
  constructor(status: RefusedError['status'], message: string) {
    super(message);
    this.status = status;
  }
}

const statusTexts: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  431: 'Request Header Fields Too Large',
  502: 'Bad Gateway',
  504: 'Gateway Timeout',
};

const rawAnswer = (status: number, message: string): string => {
  const body = `agent-task-server: ${message}\n`;
  const head = [
    `HTTP/1.1 ${status} ${statusTexts[status]}`,
    'content-type: text/plain; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
};

/** They are between the client and us, or between us and the host. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
  'host',
]);

const endToEndHeaders = ({ rawHeaders, headers }: IncomingMessage): string[] => {
  const named = (headers.connection ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim());
  const kept: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = [rawHeaders[at], rawHeaders[at + 1]];
    if (!hopByHop.has(name.toLowerCase()) && !named.includes(name.toLowerCase()))
      kept.push(name, value);
  }
  return kept;
};

/** Connects to the addresses that were checked, whatever the name means by now. */
const pinnedTo =
  (addresses: readonly LookupAddress[]): LookupFunction =>
  (_hostname, options, callback) => {
    const [first] = addresses;
    if (options.all === true || first === undefined) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };

/** Decides on a host, and looks its name up once. */
const createAdmission = (
  { hosts, always, record, resolve = lookup }: ProxyOptions,
  { resolveMs }: ProxyLimits,
) => {
  const rules = createHostRules(hosts);
  // A slow name keeps a thread of the process: one at a time for each proxy.
  const inTurn = createSerialQueue();
  const addressesOf = async (host: string): Promise<readonly LookupAddress[]> => {
    if (isIP(host) !== 0) return [{ address: host, family: isIP(host) }];
    const found = inTurn(
      () =>
        new Promise<readonly LookupAddress[]>((done, fail) =>
          resolve(host, { all: true }, (error, all) =>
            error === null
              ? done(all)
              : fail(new RefusedError(502, `${host} cannot be looked up (${error.code})`)),
          ),
        ),
    );
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, fail) => {
      timer = setTimeout(
        () => fail(new RefusedError(504, `${host} was not looked up within ${resolveMs} ms`)),
        resolveMs,
      );
    });
    return Promise.race([found, late]).finally(() => clearTimeout(timer));
  };

  return async (
    hostText: string,
    portText: string,
  ): Promise<Endpoint & { lookup: LookupFunction }> => {
    const [host, port] = [normalHost(hostText), Number(portText)];
    if (host === null) throw new RefusedError(400, 'the request names no host');
    if (!/^\d{1,5}$/.test(portText) || port < 1 || port > 65_535)
      throw new RefusedError(400, 'the request names no port');
    const isOurs = always.some((each) => each.host === host && each.port === port);
    const refuse = (why: string): never => {
      record({ host, port, allowed: false });
      throw new RefusedError(403, why);
    };
    if (!isOurs && !rules.names(host))
      return refuse(`${host} is not in the list of hosts (network)`);
    const found = await addressesOf(host);
    const reached = isOurs ? found : found.filter(({ address }) => rules.reaches(address));
    const shown = found.map(({ address }) => address).join(', ');
    if (reached.length === 0)
      return refuse(
        `${host}${shown === host ? '' : ` (${shown})`} is not a public address; list the address itself to allow it (network)`,
      );
    record({ host, port, allowed: true });
    return { host, port, lookup: pinnedTo(reached) };
  };
};

/** Passes both directions on until both ends are closed. */
export const joinSockets = (one: Socket, other: Socket, idleMs: number): void => {
  const passOn = (from: Socket, to: Socket): void => {
    from.on('error', () => to.destroy());
    from.once('close', () => to.destroySoon());
    from.setTimeout(idleMs, () => from.destroy());
    from.pipe(to);
  };
  passOn(one, other);
  passOn(other, one);
};

const failureOf = (error: unknown, host: string): RefusedError =>
  error instanceof RefusedError
    ? error
    : new RefusedError(502, `${host} cannot be reached: ${messageOf(error)}`);

/**
 * A proxy for HTTP: CONNECT, and requests with a whole address. It passes on what the list of hosts
 * allows and refuses the rest, with the reason in its answer.
 */
export const createProxy = (options: ProxyOptions) => {
  const limits = { ...defaultLimits, ...options.limits };
  const { connectMs, idleMs } = limits;
  const admit = createAdmission(options, limits);
  const sockets = new Set<Socket>();
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.once('close', () => sockets.delete(socket));
  };

  const tunnel = async (url: string, client: Socket, head: Buffer): Promise<void> => {
    const [, host = '', port = ''] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(url) ?? [];
    const target = await admit(host, port);
    if (client.destroyed) return;
    const upstream = track(connect({ ...target, allowHalfOpen: true }));
    client.once('close', () => upstream.destroy());
    await new Promise<void>((resolve, reject) => {
      upstream.setTimeout(connectMs, () =>
        upstream.destroy(
          new RefusedError(504, `${target.host} did not answer within ${connectMs} ms`),
        ),
      );
      upstream.once('connect', resolve).once('error', reject).once('close', resolve);
    });
    if (client.destroyed || upstream.destroyed) return;
    upstream.removeAllListeners('timeout');
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    if (head.length > 0) upstream.write(head);
    joinSockets(client, upstream, idleMs);
  };

  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = request.url ?? '';
    // A path alone would take its host from a header, which another program may have written.
    if (!/^http:\/\//i.test(text) || !URL.canParse(text))
      throw new RefusedError(400, 'this is a proxy: it takes CONNECT, and requests for http://');
    const url = new URL(text);
    const target = await admit(url.hostname, url.port === '' ? '80' : url.port);
    if (response.destroyed) return;
    await new Promise<void>((resolve, reject) => {
      const upstream = httpRequest({
        ...target,
        method: request.method ?? 'GET',
        path: `${url.pathname}${url.search}`,
        headers: ['Host', url.host, ...endToEndHeaders(request)],
        setHost: false,
        agent: false,
        timeout: connectMs,
      });
      upstream.once('socket', (socket) => {
        track(socket);
        socket.once('connect', () => socket.setTimeout(idleMs));
      });
      upstream.once('timeout', () =>
        upstream.destroy(new RefusedError(504, `${target.host} did not answer in time`)),
      );
      upstream.once('error', reject);
      upstream.once('response', (answer) => {
        const headers = endToEndHeaders(answer).filter(
          (name, at, all) =>
            (at % 2 === 0 ? name : (all[at - 1] ?? '')).toLowerCase() !== 'transfer-encoding',
        );
        response.writeHead(answer.statusCode ?? 502, headers);
        answer.on('error', () => response.destroy()).pipe(response);
        answer.once('close', resolve);
      });
      response.once('close', () => upstream.destroy());
      request.on('error', () => upstream.destroy()).pipe(upstream);
    });
  };

  const server = createServer({
    maxHeaderSize: headerBytes,
    headersTimeout: limits.headerMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: Math.min(2_000, limits.headerMs),
  });
  server.maxConnections = limits.connections;
  server.timeout = idleMs;
  server.on('connection', track);
  server.on('connect', (request: IncomingMessage, client: Socket, head: Buffer) => {
    client.on('error', () => client.destroy());
    tunnel(request.url ?? '', client, head).catch((error: unknown) => {
      const { status, message } = failureOf(error, request.url ?? '');
      if (!client.destroyed) client.end(rawAnswer(status, message), () => client.destroySoon());
    });
  });
  server.on('request', (request, response) => {
    forward(request, response).catch((error: unknown) => {
      const { status, message } = failureOf(error, request.headers.host ?? 'the host');
      if (response.headersSent) response.destroy();
      else
        response
          .writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
          .end(`agent-task-server: ${message}\n`);
    });
  });
  server.on('clientError', (error: NodeJS.ErrnoException, client) => {
    const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
    if (client.writable)
      client.end(rawAnswer(status, 'the request cannot be read'), () => client.destroy());
  });

  return {
    /** Takes the connections of a server that listens. */
    listenOn: (listening: Server): Promise<void> =>
      new Promise((resolve) => server.listen(listening, resolve)),
    close: (): void => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
};
