import { z } from 'zod';
import type { People, User } from './comments.ts';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';
import { createPermissions } from './permissions.ts';

export const userSchema = z.object({ login: z.string(), type: z.string().optional() }).nullable();

/**
 * Of those who may have the right to push. A member of an organisation may have none; a private member
 * is a contributor for a token of somebody outside.
 */
const associations = new Set(['OWNER', 'MEMBER', 'COLLABORATOR', 'CONTRIBUTOR']);

/** An account of an app has `[bot]` in one API, and not in the other. */
const bareName = (login: string): string => login.toLowerCase().replace(/\[bot\]$/, '');

const isBot = (user: User): boolean =>
  user !== null && (user.type === 'Bot' || user.login.endsWith('[bot]'));

/** Who may push to the repository, and who we are. */
export const createPeople = (
  client: ForgeClient,
  token: () => string | null,
  now: () => number,
): People => {
  const { ask } = client;
  const permissions = createPermissions(client, now);
  let self: { readonly token: string | null; readonly login: string } | null = null;

  const judge: People['judge'] = (signal) => {
    const mayPush = permissions(signal);
    return async ({ user, author_association: association = '' }) => {
      if (user === null || !associations.has(association)) return false;
      return association === 'OWNER' || mayPush(user.login, association !== 'CONTRIBUTOR');
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

  const login = async (signal: AbortSignal): Promise<string> => {
    const key = token();
    if (self === null || self.token !== key) self = { token: key, login: await askSelf(signal) };
    return self.login;
  };

  return {
    isBot,
    judge,
    login,
    self: async (signal) => {
      const own = bareName(await login(signal));
      return (user) => user !== null && bareName(user.login) === own;
    },
  };
};
