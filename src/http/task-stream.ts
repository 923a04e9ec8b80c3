import { frameText } from '../actors/events.ts';
import type { Journal } from '../actors/journal.ts';
import type { Entry, Store } from '../actors/store/port.ts';
import type { TaskView } from '../machines/task-view.ts';
import type { SseFrame } from './sse.ts';

export interface StreamRequest {
  readonly view: TaskView;
  /** The `Last-Event-ID` or `?after=`, or null. */
  readonly after: number | null;
  readonly signal: AbortSignal;
}

const over: ReadonlySet<string> = new Set(['complete', 'failed', 'cancelled']);

const frame = (entry: Entry): SseFrame => ({ id: entry.seq, event: entry.type, data: frameText(entry) });

const control = (type: 'connected' | 'snapshot' | 'stream_closed', view: TaskView, data: object): SseFrame => ({
  event: type,
  data: JSON.stringify({
    type,
    task_id: view.task_id,
    attempt: view.attempt,
    timestamp: new Date().toISOString(),
    data,
  }),
});

const goodbye = (view: TaskView): SseFrame =>
  control('stream_closed', view, { task_id: view.task_id, message: `task is ${view.status}` });

/** Whether nothing of a later attempt stands behind this end. */
const isLast = (store: Store, { taskId, seq }: Entry): boolean =>
  store.read({ taskId, after: seq, limit: 1 }).length === 0;

const page = 256;

async function* replay(view: TaskView, start: number, store: Store): AsyncGenerator<SseFrame> {
  let last: Entry | undefined;
  for (let after = start; ; after = last?.seq ?? after) {
    const entries = store.read({ taskId: view.task_id, after, limit: page });
    for (const entry of entries) if (entry.type !== 'stream_closed') yield frame(entry);
    if (entries.length === 0) break;
    last = entries.at(-1);
  }
  yield last?.type === 'stream_closed' ? frame(last) : goodbye(view);
}

async function* live({ view, signal }: StreamRequest, start: number, store: Store, journal: Journal) {
  for await (const entry of journal.follow({ taskId: view.task_id, after: start, signal })) {
    const last = entry.type === 'stream_closed' && isLast(store, entry);
    if (entry.type !== 'stream_closed' || last) yield frame(entry);
    if (last) return;
  }
}

/**
 * The frames of one task (CONTRACT 5): `connected`, then what came after the given id or the latest snapshot, then live,
 * without gap or duplicate, to the end of the running attempt. A task that is over is replayed and closed.
 */
export async function* taskStream(request: StreamRequest, store: Store, journal: Journal): AsyncGenerator<SseFrame> {
  const { view, after } = request;
  yield control('connected', view, { task_id: view.task_id, message: `connected to ${view.task_id}` });
  if (over.has(view.status)) return yield* replay(view, after ?? 0, store);
  const latest = store.latest(view.task_id, 'snapshot');
  if (latest === null) yield control('snapshot', view, { machine: 'task', value: 'queued', tags: [], task: view });
  yield* live(request, after ?? (latest === null ? 0 : latest.seq - 1), store, journal);
}

/** The frames of every task of the server, from the given id or from now on. */
export async function* everyStream(after: number | null, signal: AbortSignal, store: Store, journal: Journal) {
  for await (const entry of journal.follow({ after: after ?? store.lastSeq(), signal })) yield frame(entry);
}
