import type { Entry, EntryReads } from '../../actors/store/port.ts';

/**
 * The entries of a task after a seq, then new ones, without end. The store waits until the entries of
 * a call are taken.
 */
export async function* followEntries(
  store: Pick<EntryReads, 'subscribe'>,
  taskId: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<readonly Entry[]> {
  let given: { readonly entries: readonly Entry[]; readonly taken: () => void } | null = null;
  let failure: { readonly error: unknown } | null = null;
  let wake = (): void => {};
  const take = (): typeof given => {
    const entries = given;
    given = null;
    return entries;
  };
  const problem = (): typeof failure => failure;
  const leave = store.subscribe(
    {
      entries: (entries) =>
        new Promise<void>((taken) => {
          given = { entries, taken };
          wake();
        }),
      failed: (error) => {
        failure = { error };
        wake();
      },
    },
    { taskId, after },
  );
  const onAbort = (): void => wake();
  signal.addEventListener('abort', onAbort);
  try {
    while (!signal.aborted) {
      const failed = problem();
      if (failed !== null) throw failed.error;
      const next = take();
      if (next === null) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      next.taken();
      yield next.entries;
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    leave();
  }
}
