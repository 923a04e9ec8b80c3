import { dayMs, hourMs, minuteMs } from '../../machines/milliseconds.ts';

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

const second = 1_000;

/** `6.3 s`, `4 min 10 s`, `2 h 5 min`. */
export const durationText = (ms: number): string => {
  if (ms < minuteMs - 50) return `${(ms / second).toFixed(1)} s`;
  const whole = Math.round(ms / second) * second;
  if (whole < hourMs) return `${Math.floor(whole / minuteMs)} min ${(whole % minuteMs) / second} s`;
  return `${Math.floor(whole / hourMs)} h ${Math.floor((whole % hourMs) / minuteMs)} min`;
};

/** `12s`, `4m`, `3h`, `9d`. */
export const ageText = (ms: number): string => {
  const age = Math.max(0, ms);
  if (age < minuteMs) return `${Math.floor(age / second)}s`;
  if (age < hourMs) return `${Math.floor(age / minuteMs)}m`;
  return age < 2 * dayMs ? `${Math.floor(age / hourMs)}h` : `${Math.floor(age / dayMs)}d`;
};
