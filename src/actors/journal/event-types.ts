import { z } from 'zod';
import type { TaskId } from '../../machines/task.ts';
import type { Entry, NewEntry } from '../store/port.ts';

const decisionKinds = [
  'answered',
  'allowed',
  'denied',
  'unanswered',
  'commented',
  'sent_back',
  'approved',
  'merged',
  'undone',
  'discarded',
  'retried',
  'reopened',
  'closed',
] as const;

const decisionSchema = z.looseObject({
  kind: z.enum(decisionKinds),
  about: z.string().optional(),
  said: z.string().optional(),
});
const decidedDataSchema = z.looseObject({ decision: decisionSchema });
type Decision = z.infer<typeof decisionSchema>;

/** The data of a log entry. The decision is first: by that the store finds it. */
export const decisionData = (decision: Decision, message: string) => ({
  decision,
  level: 'info',
  message,
});

const textAtMost = 300;
/** Cut after secrets were removed: a part of one would not be found. */
const short = (text: string): string =>
  text.length <= textAtMost ? text : `${text.slice(0, textAtMost - 1)}…`;

export const decidedSchema = z.strictObject({
  seq: z.int(),
  task_id: z.string(),
  attempt: z.int(),
  at: z.iso.datetime(),
  kind: z.enum(decisionKinds),
  about: z.string().optional().describe('the calls that were allowed or denied'),
  said: z
    .string()
    .optional()
    .describe('the answer, the reason, the branch of a merge, or the number of comments'),
});
export type Decided = z.infer<typeof decidedSchema>;

/** None for a decision that a later version wrote. */
export const decidedIn = ({ seq, taskId, attempt, at, data }: Entry): readonly Decided[] => {
  const found = decidedDataSchema.safeParse(JSON.parse(data));
  if (!found.success) return [];
  const { kind, about, said } = found.data.decision;
  return [
    {
      seq,
      task_id: taskId,
      attempt,
      at: new Date(at).toISOString(),
      kind,
      about: about === undefined ? undefined : short(about),
      said: said === undefined ? undefined : short(said),
    },
  ];
};

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

interface MergedWork {
  readonly into: string;
  readonly commit: string;
  /** The commands that passed on its tree; absent: none ran. */
  readonly tested?: readonly string[];
  readonly tested_seconds?: number;
  /** A person said that it lands without a test. */
  readonly byWord?: boolean;
  /** Its work was taken back. */
  readonly undone?: boolean;
}

const testedWords = ({ tested, tested_seconds: seconds, byWord }: MergedWork): string => {
  if (tested !== undefined)
    return `tested with ${tested.join(', ')}${seconds === undefined ? '' : `, ${seconds} s`}`;
  return byWord === true ? 'not tested, as a person said' : 'not tested';
};

/** The data of the log entry of a merge. It stays when the branch and its record are pruned. */
export const mergeData = (merged: MergedWork) => {
  const { into, commit, undone = false } = merged;
  const what = `${into} (${commit.slice(0, 12)}), ${testedWords(merged)}`;
  return undone
    ? { level: 'info', message: `undone in ${what}` }
    : { level: 'info', message: `merged into ${what}`, merge_commit: commit };
};

/** The log entry of a merge by a person. */
export const mergeEntry = (
  taskId: TaskId,
  attempt: number,
  merged: MergedWork,
  at: number,
): NewEntry => {
  const { message, ...data } = mergeData(merged);
  const kind = merged.undone === true ? 'undone' : 'merged';
  const decided = decisionData({ kind, said: merged.into }, message);
  return entry(taskId, attempt, 'log', at, { ...decided, ...data });
};
