export interface Timeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  /** The longest time between two bytes of any kind. */
  readonly idleMs: number;
  /** The longest time between two pieces of the answer; comments and pings do not count. */
  readonly progressMs: number;
  readonly turnMs: number;
}

export const defaultTimeouts: Timeouts = {
  connectMs: 60_000,
  firstByteMs: 120_000,
  idleMs: 90_000,
  progressMs: 300_000,
  turnMs: 900_000,
};

export type Trip = 'connect' | 'first_byte' | 'idle' | 'progress' | 'turn';

/**
 * The deadlines of one streamed answer. The first one that passes calls `onTrip`; no other does.
 */
export interface Watchdog {
  headers(): void;
  byte(): void;
  progress(): void;
  stop(): void;
}

export const createWatchdog = (
  timeouts: Timeouts,
  onTrip: (trip: Trip, ms: number) => void,
): Watchdog => {
  const timers = new Map<Trip, NodeJS.Timeout>();
  const disarm = (trip: Trip): void => clearTimeout(timers.get(trip));
  const stop = (): void => {
    for (const trip of timers.keys()) disarm(trip);
  };
  const arm = (trip: Trip, ms: number): void => {
    disarm(trip);
    const expire = (): void => {
      stop();
      onTrip(trip, ms);
    };
    timers.set(trip, setTimeout(expire, ms));
  };
  arm('connect', timeouts.connectMs);
  arm('turn', timeouts.turnMs);
  return {
    headers: () => {
      disarm('connect');
      arm('first_byte', timeouts.firstByteMs);
      arm('progress', timeouts.progressMs);
    },
    byte: () => {
      disarm('first_byte');
      arm('idle', timeouts.idleMs);
    },
    progress: () => arm('progress', timeouts.progressMs),
    stop,
  };
};
