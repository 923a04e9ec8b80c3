import type { Entry, EntryReads } from '../../actors/store/port.ts';
import { isServiceError } from '../../machines/errors.ts';
import type { Method } from '../methods.ts';
import { followEntries } from '../streams/follow-entries.ts';
import type { McpBackend, McpFrame } from './backend.ts';

type FrameReads = Pick<EntryReads, 'latest' | 'subscribe'>;

const mcpFrame = ({ type, data }: Entry): McpFrame => ({ type, data: JSON.parse(data) });

/** From the latest snapshot of the task on. */
async function* readFrames(
  store: FrameReads,
  taskId: string,
  signal: AbortSignal,
): AsyncIterable<McpFrame> {
  const latest = await store.latest(taskId, 'snapshot');
  const after = latest === null ? 0 : latest.seq - 1;
  for await (const entries of followEntries(store, taskId, after, signal)) {
    yield* entries.map(mcpFrame);
    if (entries.some(({ type }) => type === 'stream_closed')) return;
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
  frames: (taskId, signal) => readFrames(store, taskId, signal),
  describeError: (error) => {
    if (isServiceError(error) && error.code !== 'internal')
      return { code: error.code, message: error.message, facts: error.facts };
    onInternal(error);
    const message = 'internal error; the server log has the details';
    return { code: 'internal', message, facts: {} };
  },
});
