import { z } from 'zod';
import type { People, User } from './comments.ts';
import type { ForgeClient } from './http/client.ts';
import type { ForgeLists } from './http/lists.ts';

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

/** Who may push, and who we are. Gitea says who may push in one list: the assignees. */
export const createPeople = (
  { ask }: ForgeClient,
  lists: ForgeLists,
  token: () => string | null,
  now: () => number,
): People => {
  let writers: { readonly logins: ReadonlySet<string>; readonly until: number } | null = null;
  let self: { readonly token: string | null; readonly login: string } | null = null;

  const askWriters = async (signal: AbortSignal): Promise<ReadonlySet<string>> => {
    if (writers !== null && writers.until > now()) return writers.logins;
    const found = await lists.first({ path: 'assignees', item: userSchema, signal });
    const logins = new Set(found.flatMap((user) => user?.login.toLowerCase() ?? []));
    writers = { logins, until: now() + rememberMs };
    return logins;
  };

  return {
    isBot: (user) => user !== null && (user.type === 'Bot' || user.login.endsWith('[bot]')),
    judge:
      (signal) =>
      async ({ user }) =>
        user !== null && (await askWriters(signal)).has(user.login.toLowerCase()),
    self: async (signal) => {
      const key = token();
      const schema = z.object({ login: z.string() });
      if (self?.token !== key)
        self = { token: key, login: (await ask({ path: '/user', schema, signal })).login };
      const own = self?.login.toLowerCase();
      return (user) => user !== null && user.login.toLowerCase() === own;
    },
  };
};
