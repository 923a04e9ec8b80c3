import { z } from 'zod';
import { asksPerson, isAtRest } from '../at-rest.ts';
import type { McpBackend, McpCall, McpFrame } from './backend.ts';

/** Below 60 s, after which many clients give up. */
const usualSeconds = 45;

const waitedTaskSchema = z.looseObject({
  status: z.string(),
  phase: z.string(),
  awaiting: z.unknown().optional(),
});

const mayAnswer = (task: unknown): boolean => {
  const { data } = waitedTaskSchema.safeParse(task);
  return data === undefined || isAtRest(data);
};

/** True when the task came to rest before its frames were asked for. */
const isEndOfTask = ({ type, data }: McpFrame): boolean =>
  type === 'snapshot' && data['task'] !== undefined && mayAnswer(data['task']);

const progressText = ({ type, data }: McpFrame): string | null => {
  if (type === 'status_update') return `${data['status']} (${data['phase']})`;
  return type === 'tool_start' ? `runs ${data['tool']}` : null;
};

interface WaitParams {
  readonly task_id: string;
  readonly timeout_seconds?: number | undefined;
}

/** Answers with the task when it is over, waits for an answer, or the time is up. */
export const waitForTask = async (
  { call, frames }: McpBackend,
  { signal, report }: McpCall,
  { task_id, timeout_seconds = usualSeconds }: WaitParams,
): Promise<unknown> => {
  const first = await call('status', { task_id });
  if (mayAnswer(first)) return first;
  const ends = new AbortController();
  const until = AbortSignal.any([
    signal,
    ends.signal,
    AbortSignal.timeout(timeout_seconds * 1_000),
  ]);
  try {
    for await (const frame of frames(task_id, until)) {
      const text = progressText(frame);
      if (text !== null) report(text);
      if (asksPerson(frame) || isEndOfTask(frame)) break;
    }
  } finally {
    ends.abort();
  }
  return call('status', { task_id });
};
