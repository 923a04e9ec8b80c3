const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** `6.3 s`, `4 min 10 s`, `2 h 5 min`. */
export const durationText = (ms: number): string => {
  if (ms < minute - 50) return `${(ms / second).toFixed(1)} s`;
  const whole = Math.round(ms / second) * second;
  if (whole < hour) return `${Math.floor(whole / minute)} min ${(whole % minute) / second} s`;
  return `${Math.floor(whole / hour)} h ${Math.floor((whole % hour) / minute)} min`;
};

/** `12s`, `4m`, `3h`, `9d`. */
export const ageText = (ms: number): string => {
  const age = Math.max(0, ms);
  if (age < minute) return `${Math.floor(age / second)}s`;
  if (age < hour) return `${Math.floor(age / minute)}m`;
  return age < 2 * day ? `${Math.floor(age / hour)}h` : `${Math.floor(age / day)}d`;
};
