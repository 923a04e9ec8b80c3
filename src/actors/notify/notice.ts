import type { TaskView } from '../journal/task-view.ts';
import type { Entry } from '../store/port.ts';

/** Events of a task that people want to hear of, named as in its stream; the last two are our own. */
export const noticeTypes = [
  'completed',
  'failed',
  'cancelled',
  'input_required',
  'approval_required',
  'parked',
  'pull_request_needs_you',
] as const;
export type NoticeType = (typeof noticeTypes)[number];

/** The JSON body of a webhook, and the input of a command. */
export interface Notice {
  readonly type: NoticeType;
  readonly timestamp: string;
  readonly data: {
    /** Equal each time the event is sent, and for no other event. */
    readonly id: string;
    readonly project: string;
    readonly task_id: string;
    readonly title: string;
    readonly status: string;
    readonly attempt: number;
    /** Why it failed, was cancelled, is parked or needs you, or the question. */
    readonly reason?: string;
    readonly cost_usd?: number;
    /** The page of the pull request. */
    readonly url?: string;
  };
}

export interface NoticeProject {
  /** Tells equal task ids of two projects apart. */
  readonly key: string;
  readonly name: string;
}

interface EntryData {
  readonly status?: string;
  readonly error?: { readonly message: string } | null;
  readonly reason?: string | null;
  readonly question?: string;
  readonly parked_until?: string;
  readonly parked_reason?: string;
  /** The task of a pull request. */
  readonly task?: string;
  readonly pull_request?: { readonly reason?: string; readonly url?: string };
}

const noticeCharactersAtMost = 2_000;

const short = (text: string): string =>
  text.length <= noticeCharactersAtMost ? text : `${text.slice(0, noticeCharactersAtMost - 1)}…`;

const noticeStatuses = {
  completed: 'complete',
  failed: 'failed',
  cancelled: 'cancelled',
  input_required: 'started',
  approval_required: 'started',
} as const;
const isEnding = (type: string): type is keyof typeof noticeStatuses =>
  Object.hasOwn(noticeStatuses, type);

/** Why a pull request waits for a person; null where it does not. */
const needOf = (data: string): string | null => {
  if (!data.includes('"waits_for":"person"')) return null;
  return (JSON.parse(data) as EntryData).pull_request?.reason ?? '';
};

/** Whether a pull request waits for a person for the reason for which it did before. */
export const isSameNeed = (before: Pick<Entry, 'data'>, after: Pick<Entry, 'data'>): boolean =>
  needOf(before.data) === needOf(after.data);

/** The task that an entry is about: that of a pull request has a history of its own. */
export const taskOfEntry = ({ type, taskId, data }: Entry): string =>
  (type === 'pullRequest' ? (JSON.parse(data) as EntryData).task : undefined) ?? taskId;

/** Null for an entry that is no news for people, such as a question after a restart. */
export const noticeTypeOf = ({ type, data }: Pick<Entry, 'type' | 'data'>): NoticeType | null => {
  if (isEnding(type)) return data.includes('"again":true') ? null : type;
  if (type === 'pullRequest') return needOf(data) === null ? null : 'pull_request_needs_you';
  return type === 'status_update' && data.includes('"parked_until"') ? 'parked' : null;
};

const reasonOfNotice = (type: NoticeType, data: EntryData): string | null => {
  if (type === 'failed') return data.error?.message ?? null;
  if (type === 'parked') return data.parked_reason ?? null;
  return data.pull_request?.reason ?? data.reason ?? data.question ?? null;
};

/** `task`: its latest view, for the title and the cost. */
export const noticeOf = (
  type: NoticeType,
  entry: Entry,
  task: TaskView | null,
  project: NoticeProject,
): Notice => {
  const data = JSON.parse(entry.data) as EntryData;
  const reason = reasonOfNotice(type, data);
  const isOfTask = type === 'pull_request_needs_you';
  const attempt = isOfTask ? (task?.attempt ?? entry.attempt) : entry.attempt;
  const cost = task?.attempt === attempt ? task.usage.cost_usd : undefined;
  const { url } = data.pull_request ?? {};
  return {
    type,
    timestamp: new Date(entry.at).toISOString(),
    data: {
      id: `${project.key}_${entry.seq}_${entry.at}`,
      project: project.name,
      task_id: taskOfEntry(entry),
      title: short(task?.title ?? ''),
      status: isEnding(type) ? noticeStatuses[type] : (data.status ?? task?.status ?? ''),
      attempt,
      reason: reason === null ? undefined : short(reason),
      cost_usd: cost,
      url,
    },
  };
};
