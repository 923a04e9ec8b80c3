/** How many streams may be open at once (rule R19). */
export interface StreamLimits {
  readonly inAll: number;
  readonly perTask: number;
}

/** Counts the open streams. */
export interface StreamCounter {
  /** @returns what to call when the stream closes, or which limit it would pass. */
  open(key: string): { readonly close: () => void } | { readonly refused: keyof StreamLimits };
}

export const createStreamCounter = (limitsNow: () => StreamLimits): StreamCounter => {
  const open = new Map<string, number>();
  let total = 0;
  return {
    open: (key) => {
      const limits = limitsNow();
      const here = open.get(key) ?? 0;
      if (total >= limits.inAll) return { refused: 'inAll' };
      if (here >= limits.perTask) return { refused: 'perTask' };
      total += 1;
      open.set(key, here + 1);
      let closed = false;
      return {
        close: () => {
          if (closed) return;
          closed = true;
          total -= 1;
          const left = (open.get(key) ?? 1) - 1;
          if (left === 0) open.delete(key);
          else open.set(key, left);
        },
      };
    },
  };
};
