import { z } from 'zod';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';
import { ForgeError } from './port.ts';

const rememberMs = 10 * 60_000;
const rememberedAtMost = 1_000;
/** A crowd of strangers must not use up the rate limit. */
const asksAtMost = 50;
const mayWrite: ReadonlySet<string> = new Set(['owner', 'admin', 'maintain', 'write']);
const schema = z.object({ permission: z.string() });

/** Tells who may push, those of one list together; `otherwise`: where the token may not ask. */
export const createPermissions = ({ ask }: ForgeClient, now: () => number) => {
  const known = new Map<string, { readonly canWrite: boolean; readonly until: number }>();

  const askFor = async (login: string, signal: AbortSignal): Promise<boolean | null> => {
    const path = `collaborators/${encodeURIComponent(login)}/permission`;
    try {
      return mayWrite.has((await ask({ path, schema, signal })).permission);
    } catch (error) {
      // The token may not ask, or the account is gone.
      if (error instanceof ForgeRefusal && ['right', 'gone'].includes(error.fault)) return null;
      throw error;
    }
  };

  const remember = (login: string, canWrite: boolean): boolean => {
    known.delete(login);
    known.set(login, { canWrite, until: now() + rememberMs });
    for (const [oldest] of known) if (known.size > rememberedAtMost) known.delete(oldest);
    return canWrite;
  };

  return (signal: AbortSignal) => {
    let asks = 0;
    return async (login: string, otherwise: boolean): Promise<boolean> => {
      const before = known.get(login);
      if (before !== undefined && before.until > now()) return before.canWrite;
      asks += 1;
      const permission = asks > asksAtMost ? null : await askFor(login, signal);
      return remember(login, permission ?? otherwise);
    };
  };
};

/** @throws ForgeError; `advice`: what a token needs that may not push */
export const requireWritable = (
  repository: string,
  {
    archived,
    permissions,
  }: {
    readonly archived?: boolean | undefined;
    readonly permissions?: { readonly push: boolean } | null | undefined;
  },
  advice: string,
): void => {
  if (archived === true)
    throw new ForgeError('refused', `${repository} is archived: nothing can be written there`);
  if (permissions?.push === false)
    throw new ForgeError('right', `the token may not push to ${repository}${advice}`);
};
