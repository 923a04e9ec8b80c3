import type { Store, StoreNode } from '../store/port.ts';

/** The name of a server in the id of one of its starts. */
export const nameIn = (node: string): string => node.slice(0, Math.max(0, node.lastIndexOf('@')));

/**
 * The live server that a request about a task is for: the one that has it, or at rest the one with
 * the folder of its last attempt. Null: this one, or nobody.
 */
export const createTaskOwners =
  (store: Pick<Store, 'actor' | 'attempts' | 'nodes'>, node: string) =>
  async (id: string): Promise<string | null> => {
    const saved = await store.actor(id);
    if (saved === null) return null;
    const isWaiting = saved.pending && saved.owner !== null;
    const owner = isWaiting ? saved.owner : ((await store.attempts(id)).at(-1)?.owner ?? null);
    if (owner === null || owner === node || nameIn(owner) === nameIn(node)) return null;
    const isIt = ({ node: other, name, state }: StoreNode): boolean =>
      state === 'live' && (other === owner || (!isWaiting && name === nameIn(owner)));
    return (await store.nodes()).find(isIt)?.node ?? null;
  };
