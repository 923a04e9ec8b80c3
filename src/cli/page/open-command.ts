import { spawn } from 'node:child_process';
import { textIn } from '../../machines/json.ts';
import type { CommandContext } from '../client/command-context.ts';
import { findServer } from '../client/find-server.ts';
import { sendHttpRequest, socketLost } from '../client/http-request.ts';
import { errorInAnswer, readBody } from '../client/transport.ts';
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
}

interface OneTimeAddress {
  readonly code: string;
  readonly url: string;
  readonly expires_at: string;
}

/** @throws CallError */
const oneTimeAddress = async (
  { project, connection }: CommandContext,
  taskId: string | undefined,
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
  const target = taskId === undefined ? '' : `&task=${encodeURIComponent(taskId)}`;
  return { code, url: `${address.url}/#c=${code}${target}`, expires_at: expires };
};

/** True when a browser was started with a file that leads to the address. */
const openThroughFile = async (
  { project: { stateDir }, env }: CommandContext,
  { code, url }: OneTimeAddress,
): Promise<boolean> => {
  const opened = await openBrowser(writeRedirect(stateDir, code, url), env);
  // The server removes it when the code is used or too old.
  if (!opened) removeRedirect(stateDir, code);
  return opened;
};

/** The address holds a code that works once and for 60 seconds. */
export const openPage = async (
  context: CommandContext,
  { task_id, print }: OpenArgs,
): Promise<number> => {
  const { io, json } = context;
  const found = await oneTimeAddress(context, task_id);
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
