/** Work that was told to stop has this long to say how it ended. */
const graceMs = 3_000;

/**
 * Runs work that is told to stop after `ms`, or by the signal. Nobody waits much longer for it, even
 * when it does not stop: a file system that does not answer cannot be interrupted.
 */
export const withDeadline = async <Result>(
  ms: number,
  signal: AbortSignal | undefined,
  what: string,
  work: (limit: AbortSignal) => Promise<Result>,
): Promise<Result> => {
  const limit = new AbortController();
  const stop = (): void => limit.abort(signal?.reason);
  const timer = setTimeout(
    () => limit.abort(new Error(`${what} did not answer within ${ms / 1_000} s`)),
    ms,
  );
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  let grace: NodeJS.Timeout | undefined;
  const left = new Promise<never>((_, reject) => {
    const onStop = (): void => {
      grace = setTimeout(() => reject(limit.signal.reason), graceMs);
    };
    if (limit.signal.aborted) onStop();
    else limit.signal.addEventListener('abort', onStop, { once: true });
  });
  try {
    return await Promise.race([work(limit.signal), left]);
  } finally {
    clearTimeout(timer);
    clearTimeout(grace);
    signal?.removeEventListener('abort', stop);
  }
};

/** @throws an error that names the work when it takes longer than `ms` */
export const withTimeout = async (
  work: Promise<unknown>,
  ms: number,
  what: string,
): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${ms / 1000} s`)), ms);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
};
