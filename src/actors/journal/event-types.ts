import type { Entry, NewEntry } from '../store/port.ts';

/** Every type of frame that the journal holds (CONTRACT 5). `connected` and `gap` are made by the stream itself. */
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

/** A frame as it goes over the wire: `{type, task_id, attempt, seq, timestamp, data}` as JSON text (CONTRACT 5). */
export const frameText = ({ type, taskId, attempt, seq, at, data }: Entry): string =>
  `{"type":${JSON.stringify(type)},"task_id":${JSON.stringify(taskId)},"attempt":${attempt},"seq":${seq},"timestamp":"${new Date(at).toISOString()}","data":${data}}`;
