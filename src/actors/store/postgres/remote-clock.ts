/**
 * The time of day of another machine, which goes on between its answers. It is late by the way of
 * an answer. `steady`: ms since any moment, never set.
 */
export const createRemoteClock = (steady: () => number) => {
  let ahead = 0;
  return {
    /** An answer that has just come tells this time (epoch ms). */
    heard: (at: number): void => {
      ahead = at - steady();
    },
    now: (): number => Math.floor(steady() + ahead),
  };
};
