import type { TaskView } from '../../actors/journal/task-view.ts';
import { clockText } from './local-time.ts';

/** `parked until 14:30`; undefined for a task that is not parked. */
export const parkedText = (
  { parked_until: until }: Pick<TaskView, 'parked_until'>,
  now: number,
): string | undefined =>
  until === undefined ? undefined : `parked until ${clockText(until, now)}`;
