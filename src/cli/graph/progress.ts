import type { TaskView } from '../../actors/journal/task-view.ts';
import { isJsonObject, textIn } from '../../machines/json.ts';
import { budgetInReason } from '../../machines/phase.ts';
import { finalStatuses } from '../../machines/task.ts';
import type { Frame } from '../client/client.ts';
import { callFault, callText, renderFrame, turnText } from '../output/render/render-frame.ts';
import { terminalText } from '../output/styled.ts';

/** A task as the frames of its server show it. */
export interface TaskProgress {
  readonly view: TaskView;
  /** False for a view of a frame: its dependencies are those of that moment. */
  readonly isFresh: boolean;
  /** True while the server works on it or will start it by itself. */
  readonly isPending: boolean;
  /** True after the last frame of an attempt, until it is started again. */
  readonly hasEnded: boolean;
  /** The last words or the last act of its agent. */
  readonly words: string;
  /** The end of what its agent said in the latest turn with a text. */
  readonly said: string;
  /** True from the start of a turn until its agent says something. */
  readonly isSilentTurn: boolean;
  /** `3/50` */
  readonly turn: string | null;
  /** Time of the last frame, or of the last change (epoch ms). */
  readonly seenAt: number;
  /** By attempt. */
  readonly usage: ReadonlyMap<number, TaskView['usage']>;
}

/** The tasks of a run, folded from frames. */
export interface Progress {
  take(frame: Frame): void;
  get(taskId: string): TaskProgress | null;
  /** The dependency that keeps a task from starting by itself; null when it may start or is over. */
  blocker(taskId: string): string | null;
  /**
   * True for a task that waits although all its dependencies in the run are complete, or that may wait
   * for another one: somebody may have added one, or it may be complete, of which no frame tells.
   */
  isStale(taskId: string): boolean;
  /** Takes the view of a task that runs already, of which no frame has come. */
  begin(view: TaskView): void;
  /** Takes the view of a stale task, or one that is newer than what the frames told. */
  refresh(view: TaskView): void;
}

const isTaskView = (value: unknown): value is TaskView =>
  isJsonObject(value) && textIn(value, 'task_id') !== null && textIn(value, 'phase') !== null;

/** Only the task's own chart says whether it is pending; an agent is at work for a pending task. */
const isPendingIn = ({ data }: Frame, before: boolean): boolean => {
  if (data['machine'] === 'agent') return before;
  const tags: unknown = data['tags'];
  return Array.isArray(tags) && tags.includes('pending');
};

const saying: ReadonlySet<string> = new Set(['log', 'input_required', 'approval_required']);

const endFrames: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);

const saidAtMost = 400;

const sayingMore = (frame: Frame, before: TaskProgress): Partial<TaskProgress> => {
  const more = textIn(frame.data, 'text') ?? '';
  const said = `${before.isSilentTurn ? '' : before.said}${more}`.slice(-saidAtMost);
  return { said, isSilentTurn: false, words: lastSentence(said) };
};

const changeIn = (frame: Frame, before: TaskProgress): Partial<TaskProgress> => {
  if (frame.type === 'text_delta') return sayingMore(frame, before);
  if (endFrames.has(frame.type)) return { hasEnded: true };
  if (frame.type === 'api_call_start')
    return {
      turn: turnText(frame)?.replace('turn ', '') ?? null,
      isSilentTurn: true,
      // What its folder lacks was said while it was prepared; the agent thinks now.
      ...(before.turn === null ? { words: '' } : {}),
    };
  if (frame.type === 'tool_start') return { words: callText(frame), said: `${before.said}\n` };
  if (frame.type === 'api_call_complete')
    return frame.data['ok'] === false ? { words: callFault(frame) } : {};
  const line = saying.has(frame.type) ? renderFrame(frame) : null;
  return line === null
    ? {}
    : { words: terminalText(line, false).slice(frame.task_id.length).trim() };
};

/** Empty for an empty text. */
export const lastSentence = (text: string): string =>
  text
    .trim()
    .split(/(?<=[.!?:])\s+|\n+/)
    .at(-1) ?? '';

/** It waits for a person who raises a budget, or for another day or month. */
export const isOverBudget = ({ parked_until, parked_reason }: TaskView): boolean =>
  parked_until !== undefined && budgetInReason(parked_reason) !== null;

const waitsForDependencies = ({ isPending, view }: TaskProgress): boolean =>
  isPending && view.status === 'queued' && view.phase === 'waiting_for_dependencies';

/** Finds the blocker of each task once, until a state changes. */
const createBlockers = (tasks: ReadonlyMap<string, TaskProgress>) => {
  const known = new Map<string, string | null>();
  const blockerBehind = (id: string, isFresh: boolean): string | null => {
    const dependency = tasks.get(id);
    // It is not of this run, and may be complete since then.
    if (dependency === undefined && !isFresh) return null;
    if (dependency?.view.status === 'complete') return null;
    if (dependency !== undefined && isOverBudget(dependency.view)) return id;
    return dependency?.isPending === true ? find(id) : id;
  };
  const find = (taskId: string): string | null => {
    const before = known.get(taskId);
    if (before !== undefined) return before;
    known.set(taskId, null); // Ends a walk through a cycle.
    const task = tasks.get(taskId);
    let blocker: string | null = null;
    if (task !== undefined && waitsForDependencies(task))
      for (const id of task.view.unmet_dependencies) blocker ??= blockerBehind(id, task.isFresh);
    known.set(taskId, blocker);
    return blocker;
  };
  return { find, forget: () => known.clear() };
};

const withView = (
  frame: Frame,
  view: TaskView,
  before: TaskProgress | undefined,
): TaskProgress => ({
  view,
  isFresh: false,
  isPending: isPendingIn(frame, before?.isPending ?? true),
  hasEnded: before?.hasEnded === true && finalStatuses.has(view.status),
  words: before?.words ?? '',
  said: before?.said ?? '',
  isSilentTurn: before?.isSilentTurn ?? true,
  turn: before?.turn ?? null,
  seenAt: Date.parse(frame.timestamp),
  usage: new Map(before?.usage).set(view.attempt, view.usage),
});

export const createProgress = (): Progress => {
  const tasks = new Map<string, TaskProgress>();
  const blockers = createBlockers(tasks);
  const refresh = (view: TaskView): void => {
    const task = tasks.get(view.task_id);
    const isNewer = task !== undefined && view.updated_at > task.view.updated_at;
    if (task === undefined || !(waitsForDependencies(task) || isNewer)) return;
    tasks.set(view.task_id, { ...task, view, isFresh: true });
    blockers.forget();
  };
  return {
    take: (frame) => {
      const before = tasks.get(frame.task_id);
      const view: unknown = frame.type === 'snapshot' ? frame.data['task'] : undefined;
      if (isTaskView(view)) {
        tasks.set(frame.task_id, withView(frame, view, before));
        blockers.forget();
      } else if (before !== undefined)
        tasks.set(frame.task_id, {
          ...before,
          ...changeIn(frame, before),
          seenAt: Date.parse(frame.timestamp),
        });
    },
    get: (taskId) => tasks.get(taskId) ?? null,
    blocker: blockers.find,
    isStale: (taskId) => {
      const task = tasks.get(taskId);
      if (task === undefined || !waitsForDependencies(task)) return false;
      const known = task.view.unmet_dependencies.map((id) => tasks.get(id));
      return (
        known.every((one) => (one?.view.status ?? 'complete') === 'complete') ||
        (!task.isFresh && known.includes(undefined))
      );
    },
    begin: (view) => {
      if (tasks.has(view.task_id)) return refresh(view);
      const usage = new Map([[view.attempt, view.usage]]);
      tasks.set(view.task_id, {
        view,
        isFresh: true,
        isPending: true,
        hasEnded: false,
        words: '',
        said: '',
        isSilentTurn: true,
        turn: null,
        seenAt: Date.parse(view.updated_at),
        usage,
      });
      blockers.forget();
    },
    refresh,
  };
};

/** Frames after which a run may be done. */
export const changesState = ({ type }: Frame): boolean =>
  type === 'snapshot' || endFrames.has(type);

/** Nothing more happens to it by itself. */
export const isOver = ({ view, isPending, hasEnded }: TaskProgress): boolean =>
  finalStatuses.has(view.status) ? hasEnded : !isPending;
