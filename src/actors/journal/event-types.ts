import type { Entry, NewEntry } from '../store/port.ts';

/**
 * Types of journal entries; docs/reference/events.md describes them. The stream adds `connected`
 * and `gap`.
 */
export const eventTypes = [
  'snapshot',
  'status_update',
  'api_call_start',
  'api_call_complete',
  'text_delta',
  'tool_start',
  'tool_output',
  'tool_end',
  'input_required',
  'approval_required',
  'usage',
  'log',
  'completed',
  'failed',
  'cancelled',
  'stream_closed',
  'tracker_imported',
  'workflow',
  'mergeQueue',
  'pullRequest',
  'source',
  'network',
] as const;
export type EventType = (typeof eventTypes)[number];

export const entry = (
  taskId: string,
  attempt: number,
  type: EventType,
  at: number,
  data: unknown,
  cause: unknown = null,
): NewEntry => ({
  taskId,
  attempt,
  type,
  at,
  data: JSON.stringify(data),
  cause: cause === null ? null : JSON.stringify(cause),
});

/** An entry as it is sent: its number is that of the whole journal. */
export type SentEntry = Omit<Entry, 'taskSeq' | 'cause'>;

/** JSON text of a frame: `{type, task_id, attempt, seq, timestamp, data}`. */
export const frameJson = ({ type, taskId, attempt, seq, at, data }: SentEntry): string =>
  `{"type":${JSON.stringify(type)},"task_id":${JSON.stringify(taskId)},"attempt":${attempt},"seq":${seq},"timestamp":"${new Date(at).toISOString()}","data":${data}}`;
