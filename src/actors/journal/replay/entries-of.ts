import type { Entry, EntryReads } from '../../store/port.ts';

const entriesPerRead = 1_000;

/** The journal of a task, or of all tasks, oldest entry first. */
export async function* entriesOf(
  store: Pick<EntryReads, 'read'>,
  taskId?: string,
): AsyncGenerator<Entry> {
  for (let after = 0; ; ) {
    const entries = await store.read({
      ...(taskId === undefined ? {} : { taskId }),
      after,
      limit: entriesPerRead,
    });
    yield* entries;
    const last = entries.at(-1);
    if (last === undefined || entries.length < entriesPerRead) return;
    after = last.seq;
  }
}
