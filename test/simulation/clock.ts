/** Who set a timer: a life of the server, whose timers die with it, or the world around it. */
export type Owner = 'server' | 'world';

/** Time that passes only when it is told to. */
export interface Clock {
  /** Epoch ms. */
  now(): number;
  /** In so many ms; of two at the same moment the first set comes first. */
  after(owner: Owner, ms: number, run: () => void): number;
  cancel(timer: number): void;
  /** Every timer of a server that is dead. */
  forgetServer(): void;
  /** Goes to the next timer and runs it; false when none is set. */
  step(): boolean;
  /** Lets everything happen that needs no time to pass. */
  settle(): Promise<void>;
  /**
   * What the server finds as time while it is simulated; gives back what puts the real one in place
   * again.
   */
  install(): () => void;
}

interface Timer {
  readonly id: number;
  readonly at: number;
  readonly owner: Owner;
  readonly run: () => void;
}

const realImmediate = globalThis.setImmediate;
const longest = 2 ** 31 - 1;

/** Reads of real files take real time: without this, what comes first would be left to chance. */
const isReading = (): boolean =>
  process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'));

export const createClock = (start: number): Clock => {
  let now = start;
  let lastId = 0;
  let timers: Timer[] = [];

  const before = (one: Timer, other: Timer): boolean =>
    one.at === other.at ? one.id < other.id : one.at < other.at;
  const after = (owner: Owner, ms: number, run: () => void): number => {
    lastId += 1;
    const timer = { id: lastId, at: now + Math.max(0, Math.min(ms, longest)), owner, run };
    const index = timers.findIndex((other) => before(timer, other));
    if (index < 0) timers.push(timer);
    else timers.splice(index, 0, timer);
    return lastId;
  };
  const cancel = (id: number): void => {
    timers = timers.filter((timer) => timer.id !== id);
  };

  /** What `setTimeout` gives back, as far as the server uses it. */
  const handleOf = (id: number) => {
    const handle = { id, ref: () => handle, unref: () => handle, [Symbol.toPrimitive]: () => id };
    return handle;
  };
  type Handle = ReturnType<typeof handleOf>;

  return {
    now: () => now,
    after,
    cancel,
    forgetServer: () => {
      timers = timers.filter(({ owner }) => owner !== 'server');
    },
    step: () => {
      const next = timers.shift();
      if (next === undefined) return false;
      now = next.at;
      next.run();
      return true;
    },
    settle: async () => {
      do await new Promise((resolve) => realImmediate(resolve));
      while (isReading());
    },
    install: () => {
      const real = {
        setTimeout: globalThis.setTimeout,
        clearTimeout: globalThis.clearTimeout,
        setImmediate: globalThis.setImmediate,
        dateNow: Date.now,
        performanceNow: performance.now,
      };
      const virtual = {
        setTimeout: (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
          handleOf(after('server', ms, () => run(...args))),
        clearTimeout: (handle: Handle | number | null | undefined) => {
          if (handle !== null && handle !== undefined) cancel(Number(handle));
        },
        setImmediate: (run: () => void) => handleOf(after('server', 0, run)),
      };
      Object.assign(globalThis, virtual);
      Date.now = () => now;
      performance.now = () => now - start;
      return () => {
        const { dateNow, performanceNow, ...functions } = real;
        Object.assign(globalThis, functions);
        Date.now = dateNow;
        performance.now = performanceNow;
      };
    },
  };
};
