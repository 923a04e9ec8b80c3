/** Calls with the same key share one promise while it runs. */
export interface SharedCalls<Result> {
  run(key: string, work: () => Promise<Result>): Promise<Result>;
  isRunning(key: string): boolean;
}

export const createSharedCalls = <Result>(): SharedCalls<Result> => {
  const running = new Map<string, Promise<Result>>();
  return {
    run: (key, work) => {
      const shared = running.get(key) ?? work().finally(() => running.delete(key));
      running.set(key, shared);
      return shared;
    },
    isRunning: (key) => running.has(key),
  };
};
