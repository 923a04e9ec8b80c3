import { existsSync } from 'node:fs';
import { withLock } from '../../actors/store/process-lock.ts';
import type { Login } from '../../http/hub/logins.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { renderTable } from '../output/render/table.ts';
import { oneLine } from '../output/safe-text.ts';
import { UsageError } from '../words/usage-error.ts';
import { hubFiles, hubFolderOf } from './hub-place.ts';
import { serverFileOf } from './hub-projects.ts';
import { knownProjects } from './known-projects.ts';
import { readLogins, writeLogins } from './login-file.ts';
import { askHub, findHub, reachHub, stopHub } from './reach-hub.ts';

export interface HubArgs {
  readonly action: 'start' | 'stop' | 'status' | 'sessions' | 'revoke';
  readonly id: string | undefined;
  readonly all: boolean | undefined;
  readonly config: string | undefined;
}

/** What `agent hub status --json` lists. */
interface ListedProject {
  readonly project: string;
  readonly slug: string;
  /** Left out while no hub runs. */
  readonly address?: string;
  readonly running: boolean;
  readonly gone?: true;
}

/** The page of a project at the hub. */
export const addressAt = (hubUrl: string, slug: string): string =>
  `${hubUrl}/p/${encodeURIComponent(slug)}/`;

type Shown = Pick<CommandContext, 'env' | 'io' | 'json'>;

const status = async ({ env, io, json }: Shown): Promise<number> => {
  const hub = await findHub(env);
  const listed = knownProjects(hubFolderOf(env)).map((known): ListedProject => {
    const { slug, root } = known;
    return {
      project: root,
      slug,
      ...(hub === null ? {} : { address: addressAt(hub.url, slug) }),
      running: serverFileOf(known) !== null,
      ...(existsSync(root) ? {} : { gone: true as const }),
    };
  });
  const code = hub === null ? exitCodes.unavailable : exitCodes.done;
  if (json) {
    io.json(listed);
    return code;
  }
  io.out(
    hub === null
      ? 'no hub runs; start one with: agent hub start'
      : `the hub is at ${hub.url}/ (pid ${hub.pid}, since ${hub.started_at})`,
  );
  const stateOf = ({ gone, running }: ListedProject): string =>
    gone === true ? 'gone' : running ? 'running' : 'stopped';
  const rows = listed.map((each) =>
    [each.slug, stateOf(each), each.project].map((text) => ({ text })),
  );
  if (rows.length > 0) io.out(renderTable(['NAME', 'STATE', 'PROJECT'], rows, io.width));
  return code;
};

const loginsNow = async (env: NodeJS.ProcessEnv): Promise<readonly Login[]> => {
  const now = new Date().toISOString();
  return readLogins(hubFiles(hubFolderOf(env)).logins).filter(({ expires_at }) => expires_at > now);
};

const sessions = async ({ env, io, json }: Shown): Promise<number> => {
  const found = await loginsNow(env);
  const shown = found.map(({ public_key: _, ...login }) => login);
  if (json) io.json(shown);
  else if (shown.length === 0) io.out('no browser is signed in; sign in with: agent open');
  else
    io.out(
      renderTable(
        ['ID', 'USED', 'EXPIRES', 'BROWSER'],
        shown.map(({ id, used_at, expires_at, user_agent }) =>
          [id, used_at, expires_at, oneLine(user_agent)].map((text) => ({ text })),
        ),
        io.width,
      ),
    );
  return exitCodes.done;
};

/** @returns the ids that are over */
const revokeAt = async (env: NodeJS.ProcessEnv, id: string | null): Promise<readonly string[]> => {
  const ids = (await loginsNow(env)).map((login) => login.id);
  const over = id === null ? ids : ids.filter((each) => each === id);
  if ((await findHub(env)) !== null) {
    await askHub(env, 'POST', id === null ? '/revoke' : `/revoke/${id}`);
    return over;
  }
  if (over.length === 0) return over;
  const { lock, logins } = hubFiles(hubFolderOf(env));
  // A hub that starts meanwhile must not read the file before.
  await withLock(lock, async () => {
    const kept = readLogins(logins);
    await writeLogins(logins, id === null ? [] : kept.filter((each) => each.id !== id));
  });
  return over;
};

const revoke = async ({ env, io, json }: Shown, { id, all }: HubArgs): Promise<number> => {
  if ((id === undefined) === (all !== true))
    throw new UsageError(
      'hub revoke needs the id of a session, or --all; see them with: agent hub sessions',
    );
  if (id !== undefined && !/^[0-9a-f]{12}$/.test(id))
    throw new UsageError(`${oneLine(id, 40)} is no id of a session; see: agent hub sessions`);
  const over = await revokeAt(env, id ?? null);
  if (id !== undefined && over.length === 0) {
    io.err(`no session has the id ${id}; see: agent hub sessions`);
    return exitCodes.notFound;
  }
  if (json) io.json({ revoked: over });
  else io.out(over.length === 1 ? 'signed 1 browser out' : `signed ${over.length} browsers out`);
  return exitCodes.done;
};

/** Needs no project. @throws CallError, ConfigError, UsageError */
export const hubCommand = async (context: Shown, args: HubArgs): Promise<number> => {
  const { env, io, json } = context;
  const { action } = args;
  if (action !== 'revoke' && args.id !== undefined)
    throw new UsageError(`hub ${action} takes no id`);
  if (action === 'status') return status(context);
  if (action === 'sessions') return sessions(context);
  if (action === 'revoke') return revoke(context, args);
  if (action === 'start') {
    const { url, pid } = await reachHub(env, args.config);
    if (json) io.json({ running: true, url, pid });
    else io.out(`the hub is at ${url}/ (pid ${pid})`);
    return exitCodes.done;
  }
  const stopped = await stopHub(env);
  if (json) io.json({ running: false, stopped: stopped !== null });
  else io.out(stopped === null ? 'no hub runs' : `the hub (pid ${stopped.pid}) has stopped`);
  return exitCodes.done;
};
