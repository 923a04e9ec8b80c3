import { posix, win32 } from 'node:path';
import { messageOf } from '../../machines/message-of.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { registerOnLinux, unregisterOnLinux } from './register-linux.ts';
import { registerOnMacos, unregisterOnMacos } from './register-macos.ts';
import { registerOnWindows, unregisterOnWindows } from './register-windows.ts';
import type { HandlerEnvironment, Registration, Removal } from './registration.ts';
import { thisProgram } from './this-program.ts';

const linux = { register: registerOnLinux, unregister: unregisterOnLinux };
const platforms: Partial<Record<NodeJS.Platform, typeof linux>> = {
  darwin: { register: registerOnMacos, unregister: unregisterOnMacos },
  win32: { register: registerOnWindows, unregister: unregisterOnWindows },
};
/** Other systems follow the freedesktop specifications as Linux does. */
const platformOf = ({ platform }: HandlerEnvironment) => platforms[platform] ?? linux;

/** One line, whatever the failed program printed. */
const registrationProblem = (error: unknown): string =>
  messageOf(error)
    .trim()
    .replace(/\s+/g, (space) => (/[\r\n]/.test(space) ? '; ' : space));

/** Under sudo the files would be root's, or go to the wrong user's home. */
const isUnderSudo = ({ env, uid }: HandlerEnvironment): boolean =>
  Boolean(env['SUDO_UID']) || (uid === 0 && Boolean(env['SUDO_USER']));

const checkPaths = ({ platform, node, script }: HandlerEnvironment): void => {
  const { isAbsolute } = platform === 'win32' ? win32 : posix;
  const odd = [node, script].find((path) => !isAbsolute(path) || /\p{Cc}/u.test(path));
  if (odd !== undefined)
    throw new Error(
      `the path ${JSON.stringify(odd)} is not absolute or contains a control character`,
    );
};

/**
 * Makes this program open this user's `agent://` links, and no other links. Repeating it changes
 * nothing. Never throws.
 */
export const registerHandler = async (environment: HandlerEnvironment): Promise<Registration> => {
  if (isUnderSudo(environment))
    return {
      status: 'refused',
      line: 'not registered: refused under sudo; run agent register-handler as yourself',
    };
  try {
    checkPaths(environment);
    return await platformOf(environment).register(environment);
  } catch (error) {
    const reason = registrationProblem(error);
    return { status: 'failed', reason, line: `not registered: ${reason}` };
  }
};

/** Undoes `registerHandler`, and nothing else. Never throws. */
export const unregisterHandler = async (environment: HandlerEnvironment): Promise<Removal> => {
  if (isUnderSudo(environment))
    return {
      status: 'refused',
      line: 'not removed: refused under sudo; run agent unregister-handler as yourself',
    };
  try {
    return await platformOf(environment).unregister(environment);
  } catch (error) {
    return { status: 'failed', line: `not removed: ${registrationProblem(error)}` };
  }
};

const good: ReadonlySet<string> = new Set([
  'registered',
  'already_registered',
  'updated',
  'removed',
  'not_registered',
]);

const end = (
  { io, json }: CommandContext,
  outcome: { readonly status: string; readonly line: string },
): number => {
  if (json) io.json(outcome);
  else io.out(outcome.line);
  return good.has(outcome.status) ? exitCodes.done : exitCodes.failed;
};

/** `force` replaces another program. */
export const register = async (context: CommandContext, force: boolean): Promise<number> =>
  end(context, await registerHandler(thisProgram(context.env, force)));

export const unregister = async (context: CommandContext): Promise<number> =>
  end(context, await unregisterHandler(thisProgram(context.env)));
