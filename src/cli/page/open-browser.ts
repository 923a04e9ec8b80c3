import { spawn } from 'node:child_process';

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
export const openBrowser = (url: string, env: NodeJS.ProcessEnv): Promise<boolean> => {
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
