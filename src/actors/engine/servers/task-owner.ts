import { canRead, isOf } from '../../journal/chart-versions.ts';
import type { SavedActor, Store, StoreNode } from '../../store/port.ts';

/** The name of a server in the id of one of its starts. */
export const nameIn = (node: string): string => node.slice(0, Math.max(0, node.lastIndexOf('@')));

const isReader =
  (saved: SavedActor) =>
  ({ state, facts }: StoreNode): boolean =>
    state === 'live' && facts?.charts !== undefined && isOf(facts.charts, saved);

/**
 * The live server that a request about a task is for: the one that has it, or at rest the one with
 * the folder of its last attempt; one that can read its state, when this one cannot. Null: this one,
 * or nobody.
 */
export const createTaskOwners =
  (store: Pick<Store, 'actor' | 'attempts' | 'nodes'>, node: string) =>
  async (id: string): Promise<string | null> => {
    const saved = await store.actor(id);
    if (saved === null) return null;
    const isWaiting = saved.pending && saved.owner !== null;
    const owner = isWaiting ? saved.owner : ((await store.attempts(id)).at(-1)?.owner ?? null);
    const isStrange = !canRead(saved);
    const isHere = owner === null || owner === node || nameIn(owner) === nameIn(node);
    if (isHere && !isStrange) return null;
    const isIt = ({ node: other, name, state }: StoreNode): boolean =>
      state === 'live' &&
      owner !== null &&
      (other === owner || (!isWaiting && name === nameIn(owner)));
    const nodes = await store.nodes();
    const found = nodes.find(isIt) ?? (isStrange ? nodes.find(isReader(saved)) : undefined);
    return found === undefined || found.node === node ? null : found.node;
  };
