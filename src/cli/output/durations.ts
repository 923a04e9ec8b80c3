import { dayMs, hourMs, minuteMs } from '../../machines/milliseconds.ts';

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
