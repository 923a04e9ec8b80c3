/** How many requests may be sent, over time. */
export interface RequestBudget {
  spend(requests: number): void;
  /** Until there is something to spend. */
  waitMs(): number;
}

/** Has `atOnce` at first, and never more; `perHour` come back. It may be overdrawn. */
export const createRequestBudget = (
  { atOnce, perHour }: { readonly atOnce: number; readonly perHour: number },
  now: () => number,
): RequestBudget => {
  const perMs = perHour / 3_600_000;
  let left = atOnce;
  let at = now();
  const refill = (): void => {
    left = Math.min(atOnce, left + Math.max(0, now() - at) * perMs);
    at = now();
  };
  return {
    spend: (requests) => {
      refill();
      left -= requests;
    },
    waitMs: () => {
      refill();
      return left >= 1 ? 0 : Math.ceil((1 - left) / perMs);
    },
  };
};
