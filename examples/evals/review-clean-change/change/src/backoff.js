const firstMs = 1_000;
const longestMs = 60_000;
/** Of the full time, what is waited at least. */
const keptShare = 0.5;

/** How long to wait before the attempt with this number, counted from 1; jitter is from 0 to 1. */
export const delayMs = (attempt, jitter = Math.random()) => {
  const fullMs = Math.min(firstMs * 2 ** (attempt - 1), longestMs);
  return Math.round(fullMs * (keptShare + jitter * (1 - keptShare)));
};
