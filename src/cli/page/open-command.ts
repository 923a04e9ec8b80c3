import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { textIn } from '../../machines/json.ts';
import type { CommandContext } from '../client/command-context.ts';
import { findServer } from '../client/find-server.ts';
import { sendHttpRequest, socketLost } from '../client/http-request.ts';
import { errorInAnswer, readBody } from '../client/transport.ts';
import { addressAt } from '../hub/hub-command.ts';
import { hubFolderOf } from '../hub/hub-place.ts';
import { registerProject } from '../hub/known-projects.ts';
import { askHub, findHub, reachHub } from '../hub/reach-hub.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { removeRedirect, writeRedirect } from './redirect-page.ts';

const openers: Readonly<Record<string, readonly string[]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

const browserWaitMs = 5_000;

/**
 * Opens an address in the browser of the desktop. Every user of the machine can read it in the
 * arguments of the opener and of the browser, so it holds no secret. @returns false when there is no desktop, or no
 * program that opens addresses
 */
const openBrowser = (url: string, env: NodeJS.ProcessEnv): Promise<boolean> => {
  const opener = openers[process.platform] ?? ['xdg-open'];
  const hasDesktop =
    opener[0] !== 'xdg-open' ||
    [env['DISPLAY'], env['WAYLAND_DISPLAY'], env['BROWSER']].some((value) => value);
  if (!hasDesktop) return Promise.resolve(false);
  return new Promise((resolve) => {
    const [program = '', ...words] = opener;
    const child = spawn(program, [...words, url], { detached: true, stdio: 'ignore', env });
    // A browser that stays in the foreground of its opener has started by then.
    const timer = setTimeout(() => resolve(true), browserWaitMs);
    const answer = (opened: boolean) => {
      clearTimeout(timer);
      resolve(opened);
    };
    child.once('error', () => answer(false));
    child.once('exit', (code) => answer(code === 0));
    child.unref();
  });
};

const askPageMs = 10_000;

export interface OpenArgs {
  readonly task_id: string | undefined;
  readonly print: boolean;
  /** The server's own page, as at a machine without a hub. */
  readonly direct: boolean;
  readonly start: boolean;
}

interface OneTimeAddress {
  readonly code: string;
  readonly url: string;
  readonly expires_at: string;
  /** Of who removes the file that leads to the address. */
  readonly stateDir: string;
}

const fragmentOf = (code: string, taskId: string | undefined): string =>
  `#c=${code}${taskId === undefined ? '' : `&task=${encodeURIComponent(taskId)}`}`;

/** The page of this project at the hub, which is started if needed. @throws CallError, ConfigError */
const addressAtHub = async (
  { project, config, connection, env }: CommandContext,
  { task_id: taskId, start }: OpenArgs,
): Promise<OneTimeAddress> => {
  const client = start ? await connection.server() : await connection.files();
  if (taskId !== undefined) await client.call('status', { task_id: taskId });
  const { slug } = registerProject(project, config === null ? undefined : resolve(config));
  const { url: hubUrl } = await reachHub(env, undefined);
  const answer = await askHub(env, 'POST', '/codes');
  const [code, expires] = [textIn(answer, 'code'), textIn(answer, 'expires_at')];
  if (code === null || expires === null) throw socketLost(new Error('the answer has no code'));
  return {
    code,
    url: `${addressAt(hubUrl, slug)}${fragmentOf(code, taskId)}`,
    expires_at: expires,
    stateDir: hubFolderOf(env),
  };
};

/** The page of the server itself. @throws CallError */
const addressAtServer = async (
  { project, connection }: CommandContext,
  { task_id: taskId }: OpenArgs,
): Promise<OneTimeAddress> => {
  const client = await connection.server();
  if (taskId !== undefined) await client.call('status', { task_id: taskId });
  const address = await findServer(project);
  if (address === null) throw socketLost(new Error('the server has stopped'));
  const headers = { 'content-type': 'application/json' };
  const options = { method: 'POST', headers, idleMs: askPageMs, body: '{}' } as const;
  const answer: unknown = JSON.parse(
    await readBody(await sendHttpRequest(address, '/page/codes', options)),
  );
  const [code, expires] = [textIn(answer, 'code'), textIn(answer, 'expires_at')];
  if (code === null || expires === null)
    throw errorInAnswer(answer) ?? socketLost(new Error('the answer has no code'));
  const url = `${address.url}/${fragmentOf(code, taskId)}`;
  return { code, url, expires_at: expires, stateDir: project.stateDir };
};

/** True when a browser was started with a file that leads to the address. */
const openThroughFile = async (
  { env }: CommandContext,
  { code, url, stateDir }: OneTimeAddress,
): Promise<boolean> => {
  const opened = await openBrowser(writeRedirect(stateDir, code, url), env);
  // The server or the hub removes it when the code is used or too old.
  if (!opened) removeRedirect(stateDir, code);
  return opened;
};

/**
 * The address holds a code that works once and for 60 seconds. A login of the hub has the rights of
 * the owner, so a token of a person opens the page of the server.
 */
export const openPage = async (context: CommandContext, args: OpenArgs): Promise<number> => {
  const { io, json, env, project } = context;
  const { print, direct, start } = args;
  const isOwn = !direct && project.token === undefined;
  const isAtHub = isOwn && (start || (await findHub(env)) !== null);
  const found = await (isAtHub ? addressAtHub(context, args) : addressAtServer(context, args));
  const { url, expires_at } = found;
  if (json) io.json({ url, expires_at });
  else if (print) io.out(url);
  else if (await openThroughFile(context, found))
    io.out(
      `opened ${new URL(url).origin} in your browser; if it shows nothing, open what this prints: agent open --print`,
    );
  else {
    io.err('no browser could be opened; open this address within 60 seconds, it works once:');
    io.out(url);
  }
  return exitCodes.done;
};
