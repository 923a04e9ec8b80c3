import type { ForgeError } from '../port.ts';

/**
 * Lets requests through. After an answer that is a limit, none is sent until the limit ends; then one
 * alone, and the others when it has its answer: to ask on while a forge refuses makes it refuse for longer.
 */
export const createLimitGate = (now: () => number) => {
  let limited: ForgeError | null = null;
  let first: Promise<unknown> | null = null;

  const isOver = (limit: ForgeError): boolean => (limit.retryAt ?? 0) <= now();

  return {
    /** An answer was a limit. */
    close: (limit: ForgeError): void => {
      limited = limit;
    },
    /** For a request that waited behind others. Null: it may be sent. */
    refusal: (): ForgeError | null => (limited === null || isOver(limited) ? null : limited),
    /** @throws ForgeError `limit`, without a request */
    pass: async <Result>(send: () => Promise<Result>): Promise<Result> => {
      while (first !== null) await first;
      const before = limited;
      if (before === null) return send();
      if (!isOver(before)) throw before;
      const sent = send();
      const settled = sent.then(
        () => {},
        () => {},
      );
      first = settled;
      try {
        return await sent;
      } finally {
        // An answer that is another limit has replaced it.
        if (limited === before) limited = null;
        if (first === settled) first = null;
      }
    },
  };
};
