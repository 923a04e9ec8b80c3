import type { TaskView } from '../../actors/journal/task-view.ts';

export const sortKeys = ['created', 'updated', 'priority', 'cost', 'status', 'title'] as const;
export type SortKey = (typeof sortKeys)[number];

const keys: Readonly<Record<SortKey, (task: TaskView) => string | number>> = {
  created: ({ created_at }) => created_at,
  updated: ({ updated_at }) => updated_at,
  /** The most urgent comes last, as the newest and the dearest do. */
  priority: ({ priority }) => -priority,
  cost: ({ usage }) => usage.cost_usd ?? 0,
  status: ({ status }) => status,
  title: ({ title }) => title,
};

/** Rising, and by the time of creation where the key is equal. */
export const compareBy =
  (sort: SortKey) =>
  (one: TaskView, other: TaskView): number => {
    const [a, b] = [keys[sort](one), keys[sort](other)];
    if (a !== b) return a < b ? -1 : 1;
    return one.created_at < other.created_at ? -1 : 1;
  };
