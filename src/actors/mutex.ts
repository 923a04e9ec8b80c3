/** Runs what it is given one after the other, in the order in which it was given. */
export type Mutex = <Result>(work: () => Promise<Result>) => Promise<Result>;

export const createMutex = (): Mutex => {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work, work);
    last = next.catch(() => {});
    return next;
  };
};
