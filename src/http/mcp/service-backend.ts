import type { Entry, EntryReads } from '../../actors/store/port.ts';
import { isServiceError } from '../../machines/errors.ts';
import type { Method } from '../methods.ts';
import type { McpBackend, McpFrame } from './backend.ts';

type FrameReads = Pick<EntryReads, 'latest' | 'subscribe'>;

const frameOf = ({ type, data }: Entry): McpFrame => ({ type, data: JSON.parse(data) });

/** From the latest snapshot of the task on. The store waits until the entries of a call are taken. */
async function* framesOf(
  store: FrameReads,
  taskId: string,
  signal: AbortSignal,
): AsyncIterable<McpFrame> {
  const latest = await store.latest(taskId, 'snapshot');
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
    { taskId, after: latest === null ? 0 : latest.seq - 1 },
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
      yield* next.entries.map(frameOf);
      if (next.entries.some(({ type }) => type === 'stream_closed')) return;
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    leave();
  }
}

/** The service of this process. What is unexpected goes to the log alone. */
export const createServiceBackend = (
  methods: Readonly<Record<string, Method>>,
  store: FrameReads,
  answerPolicy: McpBackend['answerPolicy'],
  onInternal: (error: unknown) => void,
): McpBackend => ({
  answerPolicy,
  call: async (method, params) => {
    const run = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (run === undefined) throw new Error(`there is no method ${method}`);
    return run(params);
  },
  frames: (taskId, signal) => framesOf(store, taskId, signal),
  describeError: (error) => {
    if (isServiceError(error) && error.code !== 'internal')
      return { code: error.code, message: error.message, facts: error.facts };
    onInternal(error);
    const message = 'internal error; the server log has the details';
    return { code: 'internal', message, facts: {} };
  },
});
