import { readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import { hasCode } from '../../actors/files/error-code.ts';
import { takeLock } from '../../actors/store/process-lock.ts';
import { hubOrigin } from '../../http/hub/hub-gate.ts';
import { createHub } from '../../http/hub/hub-server.ts';
import { createLogins, type Logins } from '../../http/hub/logins.ts';
import { isJsonObject, parseJson } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { readFront, readPage } from '../page/read-page.ts';
import { removeRedirect, removeRedirects } from '../page/redirect-page.ts';
import { ensurePrivateFolder } from '../server/secrets/private-files.ts';
import { version } from '../version.ts';
import { createControl } from './control.ts';
import { hubFiles } from './hub-place.ts';
import { createHubProjects } from './hub-projects.ts';
import { readLogins, writeLogins } from './login-file.ts';

const limits = {
  requestTimeout: 30_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
  // The gate refuses a request without one, with a message.
  requireHostHeader: false,
} as const;
const connectionsAtMost = 1_200;

const listenAt = (server: Server, where: object): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(where, () => {
      server.off('error', reject);
      resolve();
    });
  });

const portOf = (server: Server): number => {
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
};

const closeAll = (servers: readonly Server[]): void => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
};

const triesForBoth = 5;

/** On 127.0.0.1 and ::1, so that no other user can take the second one. Port 0 takes any. */
const listenOnBoth = async (
  port: number,
  onRequest: RequestListener,
): Promise<{ readonly port: number; readonly servers: readonly Server[] }> => {
  for (let tries = 1; ; tries += 1) {
    const [first, second] = [createServer(limits, onRequest), createServer(limits, onRequest)];
    for (const server of [first, second]) server.maxConnections = connectionsAtMost;
    try {
      await listenAt(first, { host: '127.0.0.1', port });
      await listenAt(second, { host: '::1', port: portOf(first), ipv6Only: true }).catch(
        (error: unknown) => {
          // A machine without IPv6.
          if (!hasCode(error, 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL')) throw error;
        },
      );
      return { port: portOf(first), servers: [first, second] };
    } catch (error) {
      closeAll([first, second]);
      if (port !== 0 || tries >= triesForBoth || !hasCode(error, 'EADDRINUSE')) throw error;
    }
  }
};

interface KeptPort {
  /** `hub.port` at that time. */
  readonly configured: number;
  readonly port: number;
}

const readPort = (file: string): KeptPort | null => {
  try {
    const kept = parseJson(readFileSync(file, 'utf8'));
    const [configured, port] = ['configured', 'port'].map((key) =>
      isJsonObject(kept) ? Number(kept[key]) : Number.NaN,
    );
    return Number.isInteger(configured) && Number.isInteger(port)
      ? { configured: configured ?? 0, port: port ?? 0 }
      : null;
  } catch {
    return null;
  }
};

/** The port of before where it is free, else the configured one, else a free one; it is kept. */
const listenOnOwnPort = async (file: string, configured: number, onRequest: RequestListener) => {
  const kept = readPort(file);
  const wanted = kept?.configured === configured ? kept.port : configured;
  const found = await listenOnBoth(wanted, onRequest).catch((error: unknown) => {
    if (!hasCode(error, 'EADDRINUSE', 'EACCES')) throw error;
    return listenOnBoth(0, onRequest);
  });
  const text = JSON.stringify({ configured, port: found.port } satisfies KeptPort);
  await writeFileAtomically(file, `${text}\n`);
  return found;
};

const idleMs = 12 * 60 * 60 * 1_000;

/** `look` is true when nobody has asked and no project has run for 12 hours. */
export const createIdleWatch = (isAnyRunning: () => boolean, now: () => number) => {
  let last = now();
  const use = (): void => {
    last = now();
  };
  return {
    use,
    look: (): boolean => {
      if (isAnyRunning()) use();
      return now() - last >= idleMs;
    },
  };
};

const lookEveryMs = 60_000;

export interface RunHubOptions {
  readonly folder: string;
  /** `hub.port` */
  readonly port: number;
  readonly env: NodeJS.ProcessEnv;
  readonly log: (message: string, facts?: Readonly<Record<string, unknown>>) => void;
}

export interface RunningHub {
  readonly url: string;
  stop(): Promise<void>;
  /** Resolves when it has stopped by itself, or was told to over its socket. */
  readonly ended: Promise<void>;
}

/** Null when a hub of this person runs already. */
export const runHub = async ({
  folder,
  port,
  env,
  log,
}: RunHubOptions): Promise<RunningHub | null> => {
  ensurePrivateFolder(folder);
  const files = hubFiles(folder);
  const lock = takeLock(files.lock);
  if (lock === null) return null;
  removeRedirects(folder);
  const projects = createHubProjects({ hubFolder: folder, env });
  const idle = createIdleWatch(() => projects.list().some(({ running }) => running), Date.now);
  let onRequest: RequestListener = (_, response) => void response.destroy();
  const listening = await listenOnOwnPort(files.port, port, (...given) => onRequest(...given));
  const url = hubOrigin(listening.port);
  const logins: Logins = createLogins({
    origin: url,
    kept: readLogins(files.logins),
    save: (all) => writeLogins(files.logins, all),
    onSaveFailed: (error) => log('the logins could not be saved', { error: messageOf(error) }),
    now: Date.now,
  });
  const hub = createHub({
    port: listening.port,
    logins,
    projects,
    page: readPage(),
    front: readFront(),
    onCodeOver: (code) => removeRedirect(folder, code),
    onRequest: idle.use,
    log,
  });
  onRequest = hub.onRequest;
  let hasEnded = (): void => {};
  const ended = new Promise<void>((resolve) => {
    hasEnded = resolve;
  });
  const status = { version, pid: process.pid, url, started_at: new Date().toISOString() };
  const control = createServer(
    limits,
    createControl({
      status,
      logins,
      onRevoked: hub.end,
      onCodeOver: (code) => removeRedirect(folder, code),
      onStop: () => void stop(),
    }),
  );
  rmSync(files.socket, { force: true });
  await listenAt(control, { path: files.socket });
  let stopping: Promise<void> | null = null;
  const stopNow = async (): Promise<void> => {
    clearInterval(timer);
    await projects.endSessions(logins.list().map(({ id }) => id));
    closeAll([...listening.servers, control]);
    lock.release();
    log('the hub has stopped');
    hasEnded();
  };
  const stop = (): Promise<void> => {
    stopping ??= stopNow();
    return stopping;
  };
  const timer = setInterval(() => {
    if (!idle.look()) return;
    log('nobody has used the hub for 12 hours');
    void stop();
  }, lookEveryMs);
  timer.unref();
  log('the hub listens', { url });
  return { url, stop, ended };
};
