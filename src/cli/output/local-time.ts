import { dayMs } from '../../machines/milliseconds.ts';

const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;
const almostWeekMs = 6 * dayMs;
const twoDigits = (count: number): string => String(count).padStart(2, '0');

const dateOf = (at: Date): string =>
  `${at.getFullYear()}-${twoDigits(at.getMonth() + 1)}-${twoDigits(at.getDate())}`;
const localTimeOf = (at: Date): string =>
  `${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}`;

/** A local time that is near: `14:30`, `Tue 14:30`; with the date when it is not in this week. */
export const clockText = (iso: string, now: number): string => {
  const at = new Date(iso);
  if (at.toDateString() === new Date(now).toDateString()) return localTimeOf(at);
  const isNear = Math.abs(at.getTime() - now) < almostWeekMs;
  return `${isNear ? days[at.getDay()] : dateOf(at)} ${localTimeOf(at)}`;
};

/** Local date: `2026-11-20`. */
export const dateText = (iso: string): string => dateOf(new Date(iso));

/** Local time of the day: `14:30:05`. */
export const timeOfDayText = (iso: string): string => {
  const at = new Date(iso);
  return `${localTimeOf(at)}:${twoDigits(at.getSeconds())}`;
};

/** Local time: `2026-11-20 14:30:05`. */
export const timeText = (iso: string): string => `${dateText(iso)} ${timeOfDayText(iso)}`;
