import { z } from 'zod';
import type { People, User } from './comments.ts';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';

export const userSchema = z.object({ login: z.string(), type: z.string().optional() }).nullable();

const rememberMs = 10 * 60_000;
const rememberedAtMost = 1_000;
/** A crowd of strangers must not use up the rate limit. */
const asksAtMost = 50;
/**
 * Of those who may have the right to push. A member of an organisation may have none; a private member
 * is a contributor for a token of somebody outside.
 */
const associations = new Set(['OWNER', 'MEMBER', 'COLLABORATOR', 'CONTRIBUTOR']);
const mayWrite = new Set(['admin', 'maintain', 'write']);

/** An account of an app has `[bot]` in one API, and not in the other. */
const bareName = (login: string): string => login.toLowerCase().replace(/\[bot\]$/, '');

const isBot = (user: User): boolean =>
  user !== null && (user.type === 'Bot' || user.login.endsWith('[bot]'));

/** Who may push to the repository, and who we are. */
export const createPeople = (
  { ask }: ForgeClient,
  token: () => string | null,
  now: () => number,
): People => {
  const known = new Map<string, { readonly canWrite: boolean; readonly until: number }>();
  let self: { readonly token: string | null; readonly login: string } | null = null;

  const askPermission = async (login: string, signal: AbortSignal): Promise<boolean | null> => {
    const path = `collaborators/${encodeURIComponent(login)}/permission`;
    const schema = z.object({ permission: z.string() });
    try {
      return mayWrite.has((await ask({ path, schema, signal })).permission);
    } catch (error) {
      // The token may not ask, or the account is gone: how the author is associated has to do.
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

  const judge: People['judge'] = (signal) => {
    let asks = 0;
    return async ({ user, author_association: association = '' }) => {
      if (user === null || !associations.has(association)) return false;
      if (association === 'OWNER') return true;
      const before = known.get(user.login);
      if (before !== undefined && before.until > now()) return before.canWrite;
      asks += 1;
      const permission = asks > asksAtMost ? null : await askPermission(user.login, signal);
      return remember(user.login, permission ?? association !== 'CONTRIBUTOR');
    };
  };

  const askSelf = async (signal: AbortSignal): Promise<string> => {
    const schema = z.object({ login: z.string() });
    try {
      return (await ask({ path: '/user', schema, signal })).login;
    } catch (error) {
      // The token of an app is no user's.
      if (!(error instanceof ForgeRefusal) || error.fault !== 'right') throw error;
      const viewer = z.object({ data: z.object({ viewer: schema }) });
      const body = { query: '{ viewer { login } }' };
      return (await ask({ method: 'POST', path: '/graphql', body, schema: viewer, signal })).data
        .viewer.login;
    }
  };

  return {
    isBot,
    judge,
    self: async (signal) => {
      const key = token();
      if (self === null || self.token !== key) self = { token: key, login: await askSelf(signal) };
      const own = bareName(self.login);
      return (user) => user !== null && bareName(user.login) === own;
    },
  };
};
