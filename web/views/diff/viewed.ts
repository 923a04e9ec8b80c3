import { signal } from '@preact/signals';
import { choose, chosen } from '../../data/choices.ts';

/** The files of one attempt that somebody has seen; another attempt begins without any. */
interface Viewed {
  readonly task_id: string;
  readonly attempt: number;
  readonly paths: readonly string[];
}

const tasksAtMost = 100;
const pathsAtMost = 1_000;

const isViewed = (value: unknown): value is Viewed =>
  typeof value === 'object' && value !== null && 'paths' in value && Array.isArray(value.paths);

const stored = (): readonly Viewed[] => {
  const value = chosen('viewed');
  return Array.isArray(value) ? value.filter(isViewed) : [];
};

const all = signal(stored());

export const viewedPaths = (taskId: string, attempt: number): ReadonlySet<string> =>
  new Set(all.value.find((each) => each.task_id === taskId && each.attempt === attempt)?.paths);

/** The latest tasks are kept. */
export const setViewed = (taskId: string, attempt: number, path: string, seen: boolean): void => {
  const others = [...viewedPaths(taskId, attempt)].filter((each) => each !== path);
  const paths = (seen ? [path, ...others] : others).slice(0, pathsAtMost);
  const rest = all.value.filter((each) => each.task_id !== taskId);
  all.value = [{ task_id: taskId, attempt, paths }, ...rest].slice(0, tasksAtMost);
  choose('viewed', all.value);
};
