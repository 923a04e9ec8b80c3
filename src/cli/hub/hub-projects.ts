import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isAlive } from '../../actors/process/pid.ts';
import { askSocket } from '../../http/hub/ask-socket.ts';
import type { Upstream } from '../../http/hub/forward.ts';
import type { HubProject, HubProjects } from '../../http/hub/hub-server.ts';
import { textIn } from '../../machines/json.ts';
import { hashOfRoot, stateFiles } from '../config/places/project.ts';
import { stripControls } from '../output/safe-text.ts';
import { tokenFileIn } from '../server/secrets/token-file.ts';
import { readServerFile, type ServerFile } from '../server/server-file.ts';
import { forgetProject, type KnownProject, knownProject, knownProjects } from './known-projects.ts';

const askMs = 10_000;
const endMs = 1_000;
/** `agent server start` gives up after 20 seconds. */
const startMs = 40_000;
const reasonAtMost = 2_000;

/** Null when no server of the project runs. */
export const serverFileOf = ({ root, stateDir }: KnownProject): ServerFile | null => {
  const file = readServerFile(stateFiles(stateDir).server);
  if (file === null || !isAlive(file.pid)) return null;
  return file.project === undefined || file.project === root ? file : null;
};

const socketIn = (hubFolder: string, { root }: KnownProject): string =>
  join(hubFolder, `${hashOfRoot(root)}.sock`);

interface Session {
  readonly token: string;
  /** Which process of the server gave it. */
  readonly server: string;
}

const processOf = ({ pid, started_at }: ServerFile): string => `${pid} ${started_at}`;

/**
 * Asks the server for a session as `agent open` does. The server's own token is read for this, and
 * not kept. @throws when the server does not answer, or its token cannot be read
 */
const openSession = async (
  socketPath: string,
  { stateDir }: KnownProject,
  file: ServerFile,
): Promise<Session> => {
  const { host } = new URL(file.url);
  const ask = async (path: string, body: object, token?: string): Promise<unknown> => {
    const options = { socketPath, host, method: 'POST', path, body, withinMs: askMs } as const;
    const answer = await askSocket({ ...options, ...(token === undefined ? {} : { token }) });
    if (answer.status !== 200)
      throw new Error(`the server refused a session of its page (status ${answer.status})`);
    return answer.body;
  };
  const master = tokenFileIn(stateDir, file.token_file).read();
  const code = textIn(await ask('/page/codes', {}, master), 'code');
  const token = textIn(await ask('/page/session', { code }), 'token');
  if (token === null) throw new Error('the server gave no session of its page');
  return { token, server: processOf(file) };
};

/** Runs `agent server start`. The environment is that of the hub, but for what belongs to a project. */
const startServer = (
  { root, stateDir, config }: KnownProject,
  env: NodeJS.ProcessEnv,
): Promise<string | null> =>
  new Promise((resolve) => {
    const script = fileURLToPath(new URL('../agent.js', import.meta.url));
    const named = config === null ? [] : ['--config', config];
    const words = [script, 'server', 'start', '--project', root, ...named];
    const options = {
      cwd: root,
      env: { ...env, AGENT_STATE_DIR: stateDir },
      timeout: startMs,
      killSignal: 'SIGKILL',
    } as const;
    execFile(process.execPath, words, options, (error, _, stderr) => {
      if (error === null) return resolve(null);
      const text = stripControls(stderr).trim().slice(-reasonAtMost);
      resolve(text || `the server did not start within ${startMs / 1_000} s`);
    });
  });

export interface HubProjectsOptions {
  readonly hubFolder: string;
  readonly env: NodeJS.ProcessEnv;
}

export const createHubProjects = ({ hubFolder, env }: HubProjectsOptions): HubProjects => {
  /** By login and project. At most one for each pair, which the lists bound. */
  const sessions = new Map<string, Promise<Session>>();
  const starting = new Map<string, Promise<string | null>>();
  const keyOf = (slug: string, loginId: string): string => `${loginId} ${slug}`;

  const shown = (known: KnownProject): HubProject => ({
    slug: known.slug,
    project: known.root,
    running: serverFileOf(known) !== null,
    ...(existsSync(known.root) ? {} : { gone: true as const }),
  });

  const sessionOf = async (
    key: string,
    known: KnownProject,
    file: ServerFile,
  ): Promise<Session> => {
    const before = await sessions.get(key)?.catch(() => null);
    if (before?.server === processOf(file)) return before;
    const opened = openSession(socketIn(hubFolder, known), known, file);
    sessions.set(key, opened);
    opened.catch(() => sessions.delete(key));
    return opened;
  };

  return {
    list: () => knownProjects(hubFolder).map(shown),
    find: (slug) => {
      const known = knownProject(hubFolder, slug);
      return known && shown(known);
    },
    upstream: async (slug, loginId): Promise<Upstream | null> => {
      const known = knownProject(hubFolder, slug);
      const file = known && serverFileOf(known);
      if (known === null || file === null) return null;
      const socketPath = socketIn(hubFolder, known);
      // A server that starts or ends has no socket; one of an earlier version never has.
      if (!existsSync(socketPath)) return null;
      const { token } = await sessionOf(keyOf(slug, loginId), known, file);
      return { socketPath, host: new URL(file.url).host, token };
    },
    forget: (slug, loginId) => void sessions.delete(keyOf(slug, loginId)),
    start: (slug) => {
      const known = knownProject(hubFolder, slug);
      if (known === null || !existsSync(known.root))
        return Promise.resolve('The folder of this project is gone.');
      if (serverFileOf(known) !== null)
        return Promise.resolve(
          existsSync(socketIn(hubFolder, known))
            ? null
            : 'Its server runs, but does not listen for the hub: it is of an earlier version, or has just begun. Start it again: agent server restart',
        );
      const running = starting.get(slug) ?? startServer(known, env);
      starting.set(slug, running);
      return running.finally(() => starting.delete(slug));
    },
    drop: (slug) => {
      const known = knownProject(hubFolder, slug);
      if (known === null || existsSync(known.root)) return false;
      forgetProject(hubFolder, known);
      return true;
    },
    endSessions: async (loginIds) => {
      const over = [...sessions].filter(([key]) => loginIds.includes(key.split(' ')[0] ?? ''));
      const end = async ([key, opening]: (typeof over)[number]): Promise<void> => {
        sessions.delete(key);
        const known = knownProject(hubFolder, key.slice(key.indexOf(' ') + 1));
        const file = known && serverFileOf(known);
        if (known === null || file === null) return;
        const { token } = await opening;
        const place = { socketPath: socketIn(hubFolder, known), host: new URL(file.url).host };
        await askSocket({
          ...place,
          method: 'DELETE',
          path: '/page/session',
          token,
          withinMs: endMs,
        });
      };
      // A server that is gone has ended its sessions.
      await Promise.allSettled(over.map(end));
    },
  };
};
