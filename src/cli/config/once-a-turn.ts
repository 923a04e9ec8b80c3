/** Does `work` at the first call in each turn of the event loop. */
export const onceATurn = (work: () => void): (() => void) => {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    // Not unref: it would wait for the next event, and come after it.
    setImmediate(() => {
      isDone = false;
    });
    work();
  };
};
