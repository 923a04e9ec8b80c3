/** Takes one request; false refuses it. */
export type RateLimit = () => boolean;

export const retryAfterSeconds = 1;

/** A token bucket: `perSecond` requests a second, and twice as many at once. `now` in ms. */
export const createRateLimit = (perSecond: () => number, now: () => number): RateLimit => {
  let left = Number.POSITIVE_INFINITY;
  let asked = now();
  return () => {
    const at = now();
    left = Math.min(2 * perSecond(), left + ((at - asked) * perSecond()) / 1_000);
    asked = at;
    if (left < 1) return false;
    left -= 1;
    return true;
  };
};
