import { bucketOf, type Histogram } from '../store/durations.ts';

/** Upper bounds (seconds) of the buckets of each duration that only this process knows. */
export const processBounds = {
  tracker_call: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30],
  store_commit: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5],
} as const;
export type ProcessDuration = keyof typeof processBounds;

export interface ProcessDurations {
  observe(name: ProcessDuration, seconds: number): void;
  read(): Readonly<Record<ProcessDuration, Histogram>>;
}

/** They begin at zero with the process. */
export const createProcessDurations = (): ProcessDurations => {
  const empty = (name: ProcessDuration) => ({
    bounds: processBounds[name],
    counts: [...processBounds[name], Infinity].map(() => 0),
    sumSeconds: 0,
  });
  const all = { tracker_call: empty('tracker_call'), store_commit: empty('store_commit') };
  return {
    observe: (name, seconds) => {
      const own = all[name];
      const index = bucketOf(own.bounds, seconds);
      own.counts[index] = (own.counts[index] ?? 0) + 1;
      own.sumSeconds += seconds;
    },
    read: () => structuredClone(all),
  };
};

/**
 * The same object; each call of a method that `isTimed` names is measured until it has answered.
 */
export const timed = <Port extends object>(
  port: Port,
  isTimed: (method: string) => boolean,
  observe: (seconds: number) => void,
): Port =>
  new Proxy(port, {
    get: (target, key) => {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== 'function' || typeof key !== 'string' || !isTimed(key)) return method;
      return (...given: unknown[]): unknown => {
        const startedAt = performance.now();
        const done = (): void => observe((performance.now() - startedAt) / 1_000);
        const answer: unknown = Reflect.apply(method, target, given);
        if (answer instanceof Promise) void answer.then(done, done);
        else done();
        return answer;
      };
    },
  });
