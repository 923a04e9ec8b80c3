/**
 * Commits in one turn of the event loop that do not wait for others. One task alone needs no more.
 */
const aloneAtMost = 4;

/** Counts the commits of a turn, and calls `sendRest` at its end when there were more. */
export const createTurnCount = (sendRest: () => void): { isCrowded(): boolean } => {
  let count = 0;
  const end = (): void => {
    const isCrowded = count > aloneAtMost;
    count = 0;
    if (isCrowded) sendRest();
  };
  return {
    isCrowded: () => {
      if (count === 0) setImmediate(end);
      count += 1;
      return count > aloneAtMost;
    },
  };
};
