import type { Entry, EntryReads } from '../../actors/store/port.ts';
import { isServiceError } from '../../machines/errors.ts';
import type { Method } from '../methods.ts';
import type { Caller } from '../people/callers.ts';
import type { Guard } from '../people/guard.ts';
import { holds, toolRights } from '../people/rights.ts';
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

interface ServiceBackendPorts {
  readonly methods: Readonly<Record<string, Method>>;
  readonly store: FrameReads;
  readonly answerPolicy: McpBackend['answerPolicy'];
  readonly onInternal: (error: unknown) => void;
  readonly guard: Pick<Guard, 'refuse'>;
}

/** The service of this process, for one caller. What is unexpected goes to the log alone. */
export const createServiceBackend = (
  { methods, store, answerPolicy, onInternal, guard }: ServiceBackendPorts,
  caller: Caller,
): McpBackend => ({
  answerPolicy,
  requireTool: async (name) => {
    const needs = toolRights[name];
    if (needs === undefined ? caller.isOwner : holds(caller.rights, needs)) return;
    throw await guard.refuse(caller, name, needs ?? 'admin');
  },
  call: async (method, params) => {
    const run = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (run === undefined) throw new Error(`there is no method ${method}`);
    return run(params, { caller });
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
