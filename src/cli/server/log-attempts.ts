import { z } from 'zod';
import type { Journal } from '../../actors/journal/journal.ts';
import { noticeTypeOf } from '../../actors/notify/notice.ts';
import type { Entry } from '../../actors/store/port.ts';
import type { Logger } from './logger.ts';

const dataSchema = z.object({
  waited_seconds: z.number().optional(),
  error: z.object({ code: z.string() }).nullish(),
  parked_until: z.string().optional(),
  turn: z.number().optional(),
  call_id: z.string().optional(),
  tool: z.string().optional(),
  ok: z.boolean().optional(),
  duration_ms: z.number().optional(),
});
type LoggedData = z.infer<typeof dataSchema>;

const endMessages = {
  completed: 'attempt complete',
  failed: 'attempt failed',
  cancelled: 'attempt cancelled',
  input_required: 'the agent asks',
  approval_required: 'the agent asks permission',
  parked: 'attempt parked',
} as const;

const stepMessages: Readonly<Record<string, string>> = {
  api_call_complete: 'model call ended',
  tool_end: 'tool call ended',
};

const messageFor = (entry: Entry, { waited_seconds: waited }: LoggedData): string | null => {
  const notice = noticeTypeOf(entry);
  if (notice !== null) return endMessages[notice];
  if (entry.type === 'status_update') return waited === undefined ? null : 'attempt started';
  return stepMessages[entry.type] ?? null;
};

/** Texts of a model or a tool stay in the journal. */
const logFacts = (
  { taskId, attempt }: Entry,
  { error, turn, call_id: callId, ...rest }: LoggedData,
): Readonly<Record<string, unknown>> => ({
  task_id: taskId,
  attempt,
  ...(callId === undefined && turn === undefined ? {} : { step: callId ?? `turn ${turn}` }),
  ...rest,
  ...(error == null ? {} : { code: error.code }),
});

const isLogged = ({ type }: Entry): boolean =>
  type in endMessages || type in stepMessages || type === 'status_update';

/** Writes the attempts of this server to the log, at level `debug` also their steps. */
export const logAttempts = (journal: Pick<Journal, 'onOwnCommit'>, log: Logger['log']): void => {
  journal.onOwnCommit((entries) => {
    for (const entry of entries.filter(isLogged)) {
      const data = dataSchema.parse(JSON.parse(entry.data));
      const message = messageFor(entry, data);
      if (message !== null) log(message, logFacts(entry, data));
    }
  });
};
