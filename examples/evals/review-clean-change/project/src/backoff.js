/** How long to wait before the attempt with this number, counted from 1; jitter is from 0 to 1. */
export const delayMs = (attempt, jitter = Math.random()) => {
  const full = Math.min(1000 * 2 ** (attempt - 1), 60000);
  return Math.round(full * (0.5 + jitter / 2));
};
