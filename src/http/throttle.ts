/** Counts the failures of each caller within a minute. */
export interface Throttle {
  /** `over`: the caller has more than allowed; `first`: for the first time. */
  failed(caller: string): { readonly over: boolean; readonly first: boolean };
}

export const windowMs = 60_000;
const failuresAtMost = 20;
/** Above this many callers all counts restart, so memory stays bounded. */
const callersAtMost = 1_000;

export const createThrottle = (now: () => number): Throttle => {
  const callers = new Map<string, { since: number; failures: number }>();
  return {
    failed: (caller) => {
      const known = callers.get(caller);
      const fresh = known === undefined || now() - known.since >= windowMs;
      if (fresh && callers.size >= callersAtMost) callers.clear();
      const entry = fresh
        ? { since: now(), failures: 1 }
        : { ...known, failures: known.failures + 1 };
      callers.set(caller, entry);
      return {
        over: entry.failures > failuresAtMost,
        first: entry.failures === failuresAtMost + 1,
      };
    },
  };
};
