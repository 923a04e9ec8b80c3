export interface Clocks {
  /** Time of day (epoch ms); may be set back or forward. */
  readonly wall: () => number;
  /** Milliseconds since any moment; never set. */
  readonly steady: () => number;
  /** The clock starts no earlier (epoch ms). */
  readonly notBefore: number;
}

/**
 * Epoch ms that never run backwards (ADR 0015). When the time of day is set back, this goes on;
 * when it jumps ahead, as after a sleep, so does this.
 */
export const createSteadyClock = ({ wall, steady, notBefore }: Clocks): (() => number) => {
  let ahead = notBefore - steady();
  return () => {
    ahead = Math.max(ahead, wall() - steady());
    return Math.floor(steady() + ahead);
  };
};
