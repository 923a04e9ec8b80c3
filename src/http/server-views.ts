import type { System } from '../actors/system.ts';

/** Longest wait for the names of the servers. */
const readMs = 2_000;

/** This server and the others of its store, for people; undefined when no other one can use it. */
export const serverViews = async ({
  servers,
}: Pick<System, 'servers'>): Promise<readonly object[] | undefined> => {
  if (servers === null) return undefined;
  const late = new Promise<null>((resolve) => setTimeout(resolve, readMs, null).unref());
  const found = await Promise.race([servers(), late]).catch(() => null);
  return (found ?? []).map(({ name, node, isThis, state, slots, running, waiting, facts }) => ({
    name,
    id: node,
    this: isThis,
    state: state === 'live' && facts?.draining === true ? 'draining' : state,
    slots,
    running,
    waiting,
    ...(facts === null
      ? {}
      : {
          version: facts.version,
          pool: facts.pool,
          roles: facts.roles,
          started_at: new Date(facts.startedAt).toISOString(),
        }),
  }));
};
