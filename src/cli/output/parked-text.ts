import type { TaskView } from '../../actors/journal/task-view.ts';

const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;
const twoDigits = (count: number): string => String(count).padStart(2, '0');

/** The local time of day, with the day when that is not today: `14:30`, `Tue 14:30`. */
export const clockText = (iso: string, now: number): string => {
  const at = new Date(iso);
  const time = `${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}`;
  return at.toDateString() === new Date(now).toDateString()
    ? time
    : `${days[at.getDay()] ?? ''} ${time}`;
};

/** `parked until 14:30`; undefined for a task that is not parked. */
export const parkedText = (
  { parked_until: until }: Pick<TaskView, 'parked_until'>,
  now: number,
): string | undefined =>
  until === undefined ? undefined : `parked until ${clockText(until, now)}`;
