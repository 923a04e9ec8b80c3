import { signal } from '@preact/signals';
import type { TaskView } from '../../src/actors/journal/task-view.ts';
import { callInWords } from '../../src/machines/agent/call-in-words.ts';
import { oneLine } from '../model/format.ts';
import { type Frame, numberOf, textOf } from './frame.ts';
import { call } from './source.ts';

export type { TaskView };
export type PullRequest = NonNullable<TaskView['pull_request']>;

/** What the frames of a live attempt say beyond the task; kept while the task is started. */
export interface Activity {
  /** Epoch ms of the latest frame. */
  readonly at: number;
  readonly turn: number | null;
  /** The tool that runs, with its first argument. */
  readonly tool: string | null;
  readonly attempt: number;
}

export type Tasks = ReadonlyMap<string, TaskView>;

export const tasks = signal<Tasks>(new Map());
export const activities = signal<ReadonlyMap<string, Activity>>(new Map());
/** False until the first list has been read. */
export const isLoaded = signal(false);

const changeTasks = (change: (all: Map<string, TaskView>) => void): void => {
  const all = new Map(tasks.value);
  change(all);
  tasks.value = all;
};

/** Details that frames do not have stay; those of an attempt, as long as it is the same. */
const withDetails = (before: TaskView | undefined, view: TaskView): TaskView => {
  // A title with bidi controls would be read as another one.
  const after = { ...view, title: oneLine(view.title) };
  if (before === undefined) return after;
  const { work, attempts, attachments, pull_request } = before;
  const kept = before.attempt === after.attempt ? { work, attempts } : {};
  return { attachments, pull_request, ...kept, ...after };
};

/** After a call that answers with the task. */
export const putTask = (view: TaskView): void =>
  changeTasks((all) => void all.set(view.task_id, withDetails(all.get(view.task_id), view)));

export const removeTask = (id: string): void => changeTasks((all) => void all.delete(id));

interface Page {
  readonly tasks: readonly TaskView[];
  readonly next_cursor?: string;
}

export const loadTasks = async (): Promise<void> => {
  const found = new Map<string, TaskView>();
  let cursor: string | undefined;
  do {
    const page: Page = await call('list', {
      limit: 1_000,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const task of page.tasks)
      found.set(task.task_id, withDetails(tasks.value.get(task.task_id), task));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  tasks.value = found;
  isLoaded.value = true;
};

const activityAfter = (before: Activity | undefined, { type, attempt, timestamp, data }: Frame) => {
  const same = before?.attempt === attempt ? before : null;
  const next: Activity = {
    ...{ at: Date.parse(timestamp), attempt, tool: same?.tool ?? null },
    turn: same?.turn ?? null,
  };
  if (type === 'api_call_start')
    return {
      ...next,
      turn: numberOf(data['turn']),
      tool: null,
    };
  if (type === 'tool_start')
    return {
      ...next,
      tool: callInWords({ tool: textOf(data['tool']), arguments: textOf(data['arguments']) }),
    };
  return type === 'tool_end' ? { ...next, tool: null } : next;
};

const knownMs = 1_000;
/** What a person would not see is no change. */
const isNews = (before: Activity | undefined, after: Activity): boolean =>
  before === undefined ||
  after.at - before.at >= knownMs ||
  after.attempt !== before.attempt ||
  after.tool !== before.tool ||
  after.turn !== before.turn;

/** What frames do to tasks; `changed`: whether a task is another than before. */
const changesIn = (frames: readonly Frame[], all: Map<string, TaskView>) => {
  const unknown = new Set<string>();
  let changed = false;
  for (const { task_id: id, type, data } of frames)
    if (type === 'snapshot') {
      all.set(id, withDetails(all.get(id), data['task'] as TaskView));
      unknown.delete(id);
      changed = true;
    } else if (data['deleted'] === true) {
      all.delete(id);
      unknown.delete(id);
      changed = true;
    } else if (type === 'pullRequest') {
      const [task, pull_request] = [textOf(data['task']), data['pull_request'] as PullRequest];
      const known = all.get(task);
      if (known === undefined) unknown.add(task);
      else all.set(task, { ...known, pull_request });
      changed = true;
    } else if (type === 'workflow') continue;
    else if (type === 'mergeQueue') {
      const isKnown = (id: string): boolean => all.get(id)?.work?.merge?.state === 'waiting';
      for (const id of data['batch'] as string[]) unknown.add(id);
      for (const id of data['waiting'] as string[]) if (!isKnown(id)) unknown.add(id);
    } else if (type === 'log' || type === 'tracker_imported' || !all.has(id)) unknown.add(id);
  return { unknown, changed };
};

const noteActivities = (frames: readonly Frame[], all: Tasks): void => {
  const isLive = (id: string): boolean => all.get(id)?.status === 'started';
  const live = new Map([...activities.value].filter(([id]) => isLive(id)));
  let changed = live.size < activities.value.size;
  for (const frame of frames.filter(({ task_id }) => isLive(task_id))) {
    const before = live.get(frame.task_id);
    const after = activityAfter(before, frame);
    if (!isNews(before, after)) continue;
    live.set(frame.task_id, after);
    changed = true;
  }
  if (changed) activities.value = live;
};

/** What the newest queue of merges did, since the page was opened. */
export const queueFrames = signal<readonly Frame[]>([]);
const queueFramesAtMost = 500;

const noteQueue = (frames: readonly Frame[]): void => {
  const own = frames.filter(({ type }) => type === 'mergeQueue');
  if (own.length === 0) return;
  const id = own.at(-1)?.task_id;
  queueFrames.value = [...queueFrames.value, ...own]
    .filter(({ task_id }) => task_id === id)
    .slice(-queueFramesAtMost);
};

/** @returns the ids of tasks to read again */
export const applyFrames = (frames: readonly Frame[]): ReadonlySet<string> => {
  const all = new Map(tasks.value);
  const { unknown, changed } = changesIn(frames, all);
  noteActivities(frames, all);
  noteQueue(frames);
  if (changed) tasks.value = all;
  return unknown;
};
