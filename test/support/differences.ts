import { differenceFrom } from '../../src/actors/journal/replay/replay.ts';
import type { Store } from '../../src/actors/store/port.ts';
import type { TaskId } from '../../src/machines/task.ts';

/** How saved states differ from what the journal makes of them. */
export const differencesOf = async (store: Store): Promise<readonly string[]> => {
  const all = await store.tasks('all');
  const found = await Promise.all(all.map(({ id }) => differenceFrom(store, id as TaskId)));
  return found.flatMap((difference) => difference ?? []);
};
