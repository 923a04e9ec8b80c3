import { randomBytes } from 'node:crypto';
import type { TaskId } from '../../../machines/task.ts';
import { canRead, isOf } from '../../journal/chart-versions.ts';
import type { Journal } from '../../journal/journal.ts';
import type { SavedActor, Store, StoreNode } from '../../store/port.ts';
import type { TaskHost } from '../tasks/task-host.ts';

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

/** A run of another server tells of a task that it took, maybe before that server does. */
export const watchTakes = (
  {
    journal,
    host,
  }: { readonly journal: Pick<Journal, 'onCommit'>; readonly host: Pick<TaskHost, 'live'> },
  drop: (taskIds: readonly string[]) => void,
): void => {
  const waits = (taskId: string): boolean =>
    host.live
      .get(taskId as TaskId)
      ?.actor.getSnapshot()
      .hasTag('phase:waiting_for_slot') === true;
  journal.onCommit((entries) => {
    const began = entries.filter(
      ({ type, data, taskId }) =>
        type === 'status_update' && data.includes('"status":"started"') && waits(taskId),
    );
    if (began.length === 0) return;
    // A run of our own has begun then.
    setImmediate(() => {
      const taken = began.map(({ taskId }) => taskId).filter(waits);
      if (taken.length > 0) drop(taken);
    });
  });
};

/**
 * Names one start of a server: `2026-11-23T03:04:05.678Z-5f3a9c`, after `<name>@` for one that shares
 * its store. `at`: epoch ms.
 */
export const createNodeId = (at: number, name?: string): string => {
  const start = `${new Date(at).toISOString()}-${randomBytes(3).toString('hex')}`;
  return name === undefined ? start : `${name}@${start}`;
};
