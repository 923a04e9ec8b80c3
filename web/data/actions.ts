import { type Skipped, whySkipped } from '../model/skipped.ts';
import { request } from './call.ts';
import { readDetails } from './details.ts';
import type { NewImage } from './later-parts.ts';
import { call } from './source.ts';
import { type PullRequest, putTask, removeTask, type TaskView, tasks } from './tasks.ts';

const change = async (
  method: string,
  params: Readonly<Record<string, unknown>>,
): Promise<TaskView> => {
  const view = await call<TaskView>(method, params);
  putTask(view);
  return view;
};

export const answer = ({ task_id, attempt, awaiting }: TaskView, text: string) =>
  change('respond', { task_id, attempt, input_id: awaiting?.input_id ?? '', text });

export const decide = (
  { task_id, attempt, awaiting }: TaskView,
  decision: 'allow' | 'deny',
  reason: string,
) =>
  change('respond', {
    ...{ task_id, attempt, input_id: awaiting?.input_id ?? '', decision },
    ...(reason === '' ? {} : { text: reason }),
  });

type Change = 'cancel' | 'close' | 'reopen' | 'retry';
export const changeTask = (method: Change, { task_id }: TaskView, reason = '') =>
  change(method, { task_id, ...(reason === '' ? {} : { reason }) });

/** One after the other. @returns which were refused, and why, or null */
export const changeAll = async (
  method: Change,
  all: readonly TaskView[],
): Promise<string | null> => {
  const refused: string[] = [];
  for (const task of all)
    await changeTask(method, task).catch((error: Error) => refused.push(error.message));
  if (refused.length === 0) return null;
  const more = refused.length > 1 ? ` And ${refused.length - 1} more.` : '';
  return `${refused.length} of ${all.length} not changed: ${refused[0]}${more}`;
};

interface Updated {
  readonly status: string;
  readonly message?: string;
}

interface Landing {
  readonly landed: readonly unknown[];
  readonly refused: readonly { readonly task_id: string; readonly message: string }[];
}

/** Short, since a test may take long; it goes on, and the stream tells what came of it. */
const mergeWaitSeconds = 2;

/** @returns which were refused at once, and why, or null */
const land = async (
  method: 'merge_many' | 'undo',
  ids: readonly string[],
  params: Readonly<Record<string, unknown>>,
): Promise<string | null> => {
  const { refused } = await call<Landing>(method, { ...params, wait_seconds: mergeWaitSeconds });
  readDetails(ids);
  const [first] = refused;
  if (first === undefined) return null;
  const more = refused.length > 1 ? ` And ${refused.length - 1} more.` : '';
  const of =
    ids.length > 1 ? `Refused, ${refused.length} of ${ids.length}: ${first.task_id}: ` : '';
  return `${of || 'Refused, nothing was changed: '}${first.message}${more}`;
};

/** The row goes at the first press, and the next one is under the pointer at the second. */
const pressedTwiceMs = 500;
let mergedAt = 0;

/** Together, in the queue. @returns which were refused at once, and why, or null */
export const merge = (all: readonly TaskView[]): Promise<string | null> => {
  const ids = all.map(({ task_id }) => task_id);
  const isSecond = performance.now() - mergedAt < pressedTwiceMs;
  mergedAt = performance.now();
  if (isSecond) return Promise.resolve(null);
  return land('merge_many', ids, { task_ids: ids });
};

/** Takes back what landed. @returns why not, or null. @throws CallError */
export const undo = ({ task_id }: TaskView, withDependents: boolean): Promise<string | null> =>
  land('undo', [task_id], { task_id, ...(withDependents ? { with_dependents: true } : {}) });

/** Brings the user's branch into the work; another attempt goes on with what conflicts or fails. */
export const update = async ({ task_id }: TaskView): Promise<void> => {
  const params = { task_id, wait_seconds: mergeWaitSeconds };
  const { status, message } = await call<Updated>('update', params);
  readDetails([task_id]);
  if (status === 'refused') throw new Error(`Not updated: ${message}`);
};

/** Opens its pull request, or brings it up to date. @throws CallError, Error when nothing came of it */
export const publish = async (
  { task_id, pull_request: before }: TaskView,
  draft: boolean,
): Promise<void> => {
  const params = { task_id, ...(draft ? { draft } : {}) };
  const { pull_request } = await call<{ readonly pull_request: PullRequest }>('publish', params);
  const task = tasks.value.get(task_id);
  if (task !== undefined) putTask({ ...task, pull_request });
  if (pull_request.state !== 'publishing') return;
  if (pull_request.waits_for !== 'person') throw new Error('Not yet: the server tries again.');
  // The view says why; the same reason again would change nothing there.
  if (pull_request.reason === before?.reason) throw new Error('Refused again, for that reason.');
};

export const discard = async ({ task_id, attempt }: TaskView): Promise<void> => {
  await change('discard', { task_id, attempt });
};

export interface NewComment {
  readonly path: string;
  readonly line?: number;
  readonly end_line?: number;
  readonly text: string;
}
export type Verdict = 'comment' | 'request_changes' | 'approve';

export const review = async (
  { task_id }: TaskView,
  verdict: Verdict,
  comments: readonly NewComment[],
): Promise<void> => {
  await change('review', { task_id, verdict, comments });
};

/** Starts a task and all that it depends on, each when it is ready. @returns why not, or null */
export const run = async (
  taskIds: readonly string[] | null,
  role: string | null,
  verify: readonly string[] = [],
): Promise<string | null> => {
  const { accepted, skipped } = await call<{
    readonly accepted: readonly { readonly task_id: string }[];
    readonly skipped: readonly Skipped[];
  }>('run', {
    ...(taskIds === null ? {} : { task_ids: taskIds }),
    ...(role === null ? {} : { role }),
    ...(verify.length === 0 ? {} : { options: { verify } }),
  });
  if (skipped.length === 0) return accepted.length === 0 ? 'No open task is left to run.' : null;
  return `Started ${accepted.length}. Not started: ${whySkipped(skipped)}.`;
};

export interface NewTask {
  readonly description: string;
  readonly title?: string;
  readonly dependencies?: readonly string[];
  readonly priority?: number;
  readonly labels?: readonly string[];
  readonly attachments?: readonly NewImage[];
}
export const create = (task: NewTask): Promise<TaskView> => change('create', { ...task });

export const edit = (task_id: string, fields: Partial<NewTask>): Promise<TaskView> =>
  change('edit', { task_id, ...fields });

export const addDependency = (task_id: string, depends_on: string) =>
  change('add_dependency', { task_id, depends_on });
export const removeDependency = (task_id: string, depends_on: string) =>
  change('remove_dependency', { task_id, depends_on });

/** The file of `agent export`. @throws CallError */
export const exportTask = async (task_id: string): Promise<Blob> => {
  const response = await request(`export/${encodeURIComponent(task_id)}`);
  if (!response.ok) throw new Error(`Not exported: the server answered ${response.status}.`);
  return response.blob();
};

export const deleteTask = async (task_id: string): Promise<void> => {
  await call('delete', { task_id });
  removeTask(task_id);
};
