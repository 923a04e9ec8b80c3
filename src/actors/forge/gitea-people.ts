import { z } from 'zod';
import type { People, User } from './comments.ts';
import type { ForgeClient } from './http/client.ts';
import type { ForgeLists } from './http/lists.ts';
import { createPermissions } from './permissions.ts';

/** The account of who was deleted. */
const ghostId = -1;

export const userSchema = z
  .object({ id: z.number(), login: z.string() })
  .nullable()
  .transform((user): User => {
    if (user === null || user.id === ghostId) return null;
    // Accounts of the forge itself, as the one of its Actions, have such numbers.
    return { login: user.login, type: user.id < 0 ? 'Bot' : 'User' };
  });

const rememberMs = 10 * 60_000;

/**
 * Who may push, and who we are. Only who may be assigned is asked about: that is one list, and nobody
 * else may write. Some of them may write issues alone; a token without the right to ask takes them all.
 */
export const createPeople = (
  client: ForgeClient,
  lists: ForgeLists,
  token: () => string | null,
  now: () => number,
): People => {
  const { ask } = client;
  const permissions = createPermissions(client, now);
  let assignees: { readonly logins: ReadonlySet<string>; readonly until: number } | null = null;
  let self: { readonly token: string | null; readonly login: string } | null = null;

  const askAssignees = async (signal: AbortSignal): Promise<ReadonlySet<string>> => {
    if (assignees !== null && assignees.until > now()) return assignees.logins;
    const found = await lists.first({ path: 'assignees', item: userSchema, signal });
    const logins = new Set(found.flatMap((user) => user?.login.toLowerCase() ?? []));
    assignees = { logins, until: now() + rememberMs };
    return logins;
  };

  const login = async (signal: AbortSignal): Promise<string> => {
    const key = token();
    const schema = z.object({ login: z.string() });
    if (self === null || self.token !== key)
      self = { token: key, login: (await ask({ path: '/user', schema, signal })).login };
    return self.login;
  };

  return {
    login,
    isBot: (user) => user !== null && (user.type === 'Bot' || user.login.endsWith('[bot]')),
    judge: (signal) => {
      const mayPush = permissions(signal);
      return async ({ user }) =>
        user !== null &&
        (await askAssignees(signal)).has(user.login.toLowerCase()) &&
        mayPush(user.login, true);
    },
    self: async (signal) => {
      const own = (await login(signal)).toLowerCase();
      return (user) => user !== null && user.login.toLowerCase() === own;
    },
  };
};
