export interface Clocks {
  /** The system's time of day (epoch ms), which people and programs set. */
  readonly wall: () => number;
  /** Milliseconds since some moment; never set by anybody. */
  readonly steady: () => number;
  /** A time that has been already (epoch ms): a clock that was set back since does not bring it back. */
  readonly notBefore: number;
}

/**
 * Epoch ms that never run backwards (ADR 0015): when the time of day is set back, time goes on from where it was; when it
 * jumps ahead, as after a machine slept, so does this.
 */
export const createSteadyClock = ({ wall, steady, notBefore }: Clocks): (() => number) => {
  let ahead = notBefore - steady();
  return () => {
    ahead = Math.max(ahead, wall() - steady());
    return Math.floor(steady() + ahead);
  };
};
