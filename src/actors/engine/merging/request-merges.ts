import { setTimeout } from 'node:timers/promises';
import { isServiceError, type Refusal, refusal, ServiceError } from '../../../machines/errors.ts';
import type { MergeConflict, Merged } from '../../../machines/merge-queue/merge-queue-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { StoreReads } from '../../store/port.ts';
import type { TrackerReads } from '../../tracker/port.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { WorkView } from '../../workspace/worktrees/work-view.ts';
import type { MergeSettings } from '../attempts/settings.ts';
import type { ListRequest, TaskPage } from '../queries/list-tasks.ts';
import { requireId } from '../queries/task-id.ts';
import type { MergeQueue, MergeWish, PlannedMerge } from './merge-queue.ts';
import { sendsBack } from './rework.ts';

interface HowToMerge {
  /** Absent: as `merge.style` says. */
  readonly squash?: boolean;
  readonly force?: boolean;
  /** False: a person says that it lands without a test. */
  readonly verify?: boolean;
  /** The name of the caller. */
  readonly by?: string;
}

export interface MergeRequest extends HowToMerge {
  readonly taskId: string;
  readonly attempt?: number;
}

interface HowLong {
  /** The answer comes after so long, and what is in the queue then goes on; absent: at the end. */
  readonly waitSeconds?: number;
}

export interface MergeManyRequest extends HowToMerge, HowLong {
  readonly taskIds: readonly string[];
  /** Of the only one. */
  readonly attempt?: number;
  /** All complete work that is not merged, beside `taskIds`. */
  readonly all: boolean;
  /** Nothing is merged: the answer says in which order what would be tested. */
  readonly dryRun?: boolean;
}

export interface LandedTask {
  readonly task_id: TaskId;
  readonly attempt: number;
  /** `nothing`: it was on the branch before, or there is no work. */
  readonly status: 'merged' | 'nothing';
  /** Absent when there is no work. */
  readonly commit?: string;
  readonly into?: string;
  /** The commands that passed on exactly the tree that the branch moved to. */
  readonly tested: readonly string[];
}

export interface RefusedTask {
  readonly task_id: string;
  readonly attempt?: number;
  /** `verify_failed`, `merge_conflict`, or that of an error. */
  readonly code: string;
  readonly message: string;
  /** Tasks whose work is on the branch, and was not when the attempt began. */
  readonly with: readonly string[];
  readonly command?: string;
  readonly output?: string;
  readonly paths?: readonly string[];
  /** Another attempt goes on with it, and is merged then (`merge.on_conflict`, `merge.on_red`). */
  readonly sent_back?: true;
  /** As the method `merge` answers. */
  readonly conflict?: MergeConflict;
}

export interface MergedMany {
  readonly landed: readonly LandedTask[];
  readonly refused: readonly RefusedTask[];
  /** In the queue when the answer came. */
  readonly waiting?: readonly TaskId[];
  /** Of a dry run. */
  readonly planned?: readonly PlannedTask[];
}

export type PlannedTask = PlannedMerge & Pick<WorkView, 'conflicts_with'>;

/** They reject with `ServiceError` only. */
export interface MergeRequests {
  /**
   * `conflict`: nothing was changed; so it is, too, when the signal stops the test.
   * @throws task_not_found, event_not_allowed
   */
  merge(
    request: MergeRequest,
    signal?: AbortSignal,
  ): Promise<{ readonly task_id: string; readonly attempt: number } & Merged>;
  /** Merges what can be merged, tested together, and names the rest. @throws invalid_params */
  mergeMany(request: MergeManyRequest, signal?: AbortSignal): Promise<MergedMany>;
  /**
   * Takes back what landed for a task, tested as what lands; the task is open again. @throws
   * task_not_found, event_not_allowed when nothing landed, or work that depends on it did
   */
  undo(request: UndoRequest, signal?: AbortSignal): Promise<MergedMany>;
}

export interface UndoRequest extends HowLong {
  readonly taskId: string;
  /** Landed work that depends on it is undone before it. */
  readonly withDependents: boolean;
}

interface MergeRequestPorts {
  readonly tracker: Pick<TrackerReads, 'dependents'>;
  readonly merges: Pick<MergeQueue, 'merge' | 'plan' | 'isIn'>;
  readonly workspace: Pick<Workspace, 'workOf'>;
  readonly store: Pick<StoreReads, 'read'>;
  readonly status: (taskId: string) => Promise<TaskView>;
  readonly list: (request: ListRequest) => Promise<TaskPage>;
  readonly landing: () => MergeSettings;
  /** Names of those who asked for its attempts. */
  readonly runBy: (taskId: TaskId) => Promise<readonly string[]>;
}

const entriesAtOnce = 1_000;
const tasksAtOnce = 500;
const neverAborted = new AbortController().signal;

const readEnd = async (
  store: MergeRequestPorts['store'],
  taskId: TaskId,
  attempt: number,
): Promise<string | null> => {
  for (let after = 0; ; ) {
    const entries = await store.read({ taskId, after, limit: entriesAtOnce });
    for (const { type, attempt: of, data } of entries) {
      if (type !== 'completed' && type !== 'failed' && type !== 'cancelled') continue;
      const end = endOfAttempt({ type, attempt: of, data: JSON.parse(data) }, attempt);
      if (end !== null) return end;
    }
    const last = entries.at(-1);
    if (last === undefined || entries.length < entriesAtOnce) return null;
    after = last.seq;
  }
};

/** Work that lands there comes to the branch by itself. */
const isAtForge = ({ pull_request: found }: TaskView): boolean =>
  found?.state === 'open' || found?.state === 'merging';

/** Complete work that a merge would take. */
const isUnmerged = (task: TaskView): boolean => {
  const { branch, merge_commit: landed, discarded_at: discarded } = task.work ?? {};
  return branch !== undefined && (landed ?? discarded) === undefined && !isAtForge(task);
};

const refusedTask = ({ taskId, attempt }: MergeWish, conflict: MergeConflict): RefusedTask => {
  const { why, files, failed, with: others = [] } = conflict;
  return {
    task_id: taskId,
    attempt,
    message: why,
    with: others,
    conflict,
    code: failed === undefined ? 'merge_conflict' : 'verify_failed',
    ...failed,
    ...(files.length === 0 ? {} : { paths: files }),
  };
};

/** Makes a wish of a request. It rejects with task_not_found and event_not_allowed. */
const createWishes =
  ({ workspace, store, status, landing, runBy }: MergeRequestPorts) =>
  async (request: MergeRequest): Promise<MergeWish> => {
    const { taskId: given, attempt: wanted, squash, force = false, verify = true, by } = request;
    const task = await status(given);
    const taskId = requireId(task.task_id);
    if (landing().notAuthor && by !== undefined && (await runBy(taskId)).includes(by))
      throw new ServiceError('forbidden', { needs: 'review', name: by, ran: taskId });
    const attempt = wanted ?? task.attempt;
    if (attempt === 0) {
      const state = `${task.status}, without an attempt`;
      const facts = { task_id: taskId, event: 'merge', state, allowed: ['run'] };
      throw new ServiceError('event_not_allowed', facts);
    }
    const work = await workspace.workOf(taskId, attempt);
    const refused = refusesMerge({
      taskId,
      attempt,
      force,
      isLive: task.status === 'started' && attempt === task.attempt,
      status: task.status,
      end: await readEnd(store, taskId, attempt),
      isDiscarded: work?.discarded_at !== undefined,
      isUndone: work?.undone === true,
      isAtForge: isAtForge(task),
    });
    if (refused !== null) throw ServiceError.from(refused);
    const style = squash === undefined ? landing().style : squash ? 'squash' : 'ff';
    return { taskId, attempt, style, verify, by: 'person', ...(force ? { force } : {}) };
  };

/** The attempt of a task whose work is on the branch; null: none is. */
const landedAttempt = ({ attempt, attempts = [], work }: TaskView): number | null =>
  work?.merged_at === undefined
    ? (attempts.findLast(({ merged_at }) => merged_at !== undefined)?.attempt ?? null)
    : attempt;

/** Landed work of tasks that depend on one, directly or through others. */
const landedDependents = async (
  { tracker, status }: Pick<MergeRequestPorts, 'tracker' | 'status'>,
  taskId: TaskId,
): Promise<ReadonlyMap<TaskId, number>> => {
  const seen = new Set<TaskId>([taskId]);
  const landed = new Map<TaskId, number>();
  for (const id of seen)
    for (const { id: next } of await tracker.dependents(id)) {
      if (seen.has(next)) continue;
      seen.add(next);
      const attempt = landedAttempt(await status(next));
      if (attempt !== null) landed.set(next, attempt);
    }
  return landed;
};

/** Names other work that is known to conflict with it. */
const namesConflicts =
  ({ status }: Pick<MergeRequestPorts, 'status'>) =>
  async (planned: PlannedMerge): Promise<PlannedTask> => {
    const { work } = await status(planned.task_id);
    const conflicts = work?.conflicts_with;
    return { ...planned, ...(conflicts === undefined ? {} : { conflicts_with: conflicts }) };
  };

export const createMergeRequests = (ports: MergeRequestPorts): MergeRequests => {
  const { merges, list, status } = ports;

  const wishOf = createWishes(ports);

  /** In the order of the wishes. */
  const outcomes = (wishes: readonly MergeWish[], signal: AbortSignal): Promise<Merged>[] =>
    merges.merge(wishes, signal).map((merged) =>
      merged.catch((error: unknown): Merged => {
        if (!signal.aborted) throw error;
        return { status: 'conflict', branch: '', why: 'who asked for it went away', files: [] };
      }),
    );

  const carryOut = async (
    wishes: readonly MergeWish[],
    refusedBefore: readonly RefusedTask[],
    { waitSeconds }: HowLong,
    signal: AbortSignal,
  ): Promise<MergedMany> => {
    const [landed, refused]: [LandedTask[], RefusedTask[]] = [[], [...refusedBefore]];
    const waiting = new Set(wishes.map(({ taskId }) => taskId));
    const until = waitSeconds === undefined ? signal : neverAborted;
    // Nobody leaves the queue for these: it would grow with each request.
    const areIn = await Promise.all(
      wishes.map(async (wish) => waitSeconds !== undefined && (await merges.isIn(wish))),
    );
    const joining = wishes.filter((_, at) => areIn[at] === false);
    const found = joining.length === 0 ? [] : outcomes(joining, until);
    // As they end: so in the order in which they landed.
    const noted = found.map(async (outcome, at) => {
      const [merged, wish] = [await outcome, joining[at]];
      if (wish === undefined) return;
      waiting.delete(wish.taskId);
      if (merged.status === 'conflict') {
        const isSent = !wish.undo && sendsBack(merged, ports.landing(), 0) !== null;
        refused.push({ ...refusedTask(wish, merged), ...(isSent ? { sent_back: true } : {}) });
      } else {
        const { taskId: task_id, attempt: number } = wish;
        landed.push({ task_id, attempt: number, tested: [], ...merged });
      }
    });
    const ended = Promise.all(noted);
    // Who waits no longer is told of no failure; what came of it is in the tasks.
    ended.catch(() => {});
    const late = (seconds: number) => setTimeout(seconds * 1_000, undefined, { ref: false });
    await (waitSeconds === undefined ? ended : Promise.race([ended, late(waitSeconds)]));
    return { landed, refused, ...(waiting.size === 0 ? {} : { waiting: [...waiting] }) };
  };

  const unmergedIds = async (): Promise<readonly string[]> => {
    const ids: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const next = cursor === undefined ? {} : { cursor };
      const page = await list({ status: 'complete', limit: tasksAtOnce, ...next });
      ids.push(...page.tasks.filter(isUnmerged).map(({ task_id }) => task_id));
      cursor = page.next_cursor;
      if (cursor === undefined) return ids;
    }
  };

  return {
    merge: async (request, signal = neverAborted) => {
      const wish = await wishOf(request);
      const [merged] = await Promise.all(outcomes([wish], signal));
      const { taskId: task_id, attempt } = wish;
      return { task_id, attempt, ...(merged ?? { status: 'nothing' }) };
    },
    mergeMany: async (request, signal = neverAborted) => {
      const { taskIds, all, attempt, dryRun = false, ...how } = request;
      if (attempt !== undefined && (all || taskIds.length !== 1))
        throw new ServiceError('invalid_params', {
          fields: [{ path: 'attempt', problem: 'is of one task: give one task id with it' }],
        });
      const ids = new Set([...taskIds.map(requireId), ...(all ? await unmergedIds() : [])]);
      const wishes: MergeWish[] = [];
      const [landed, refused]: [LandedTask[], RefusedTask[]] = [[], []];
      for (const taskId of ids)
        try {
          wishes.push(await wishOf({ taskId, attempt, ...how }));
        } catch (error) {
          if (!isServiceError(error)) throw error;
          refused.push({ task_id: taskId, code: error.code, message: error.message, with: [] });
        }
      if (dryRun) {
        const planned = await merges.plan(wishes);
        return { landed, refused, planned: await Promise.all(planned.map(namesConflicts(ports))) };
      }
      return carryOut(wishes, refused, request, signal);
    },
    undo: async (request, signal = neverAborted) => {
      const { taskId: given, withDependents } = request;
      const task = await status(given);
      const taskId = requireId(task.task_id);
      const attempt = landedAttempt(task);
      const refuse = (state: string, allowed: readonly string[]): ServiceError =>
        new ServiceError('event_not_allowed', { task_id: taskId, event: 'undo', state, allowed });
      if (attempt === null) throw refuse('without work that landed', ['diff', 'discard']);
      const dependents = await landedDependents(ports, taskId);
      if (dependents.size > 0 && !withDependents) {
        const ids = [...dependents.keys()].join(', ');
        throw refuse(`landed, and so did ${ids}, which depends on it`, ['undo --with-dependents']);
      }
      const how = { style: 'squash', verify: true, by: 'person', force: true, undo: true } as const;
      const all = [...dependents, [taskId, attempt] as const];
      const wishes = all.map(([id, number]) => ({ taskId: id, attempt: number, ...how }));
      return carryOut(wishes, [], request, signal);
    },
  };
};

interface EndFrame {
  readonly type: string;
  readonly attempt: number;
  readonly data: unknown;
}

const statusByEnd: Readonly<Record<string, string>> = {
  completed: 'complete',
  failed: 'failed',
  cancelled: 'cancelled',
};
const isByHand = (data: unknown): boolean =>
  typeof data === 'object' && data !== null && 'by_hand' in data;

/** The first end of the attempt, whatever happened to the task later. Null for other frames. */
export const endOfAttempt = (frame: EndFrame, attempt: number): string | null => {
  const end = frame.attempt === attempt ? statusByEnd[frame.type] : undefined;
  return end === 'complete' && isByHand(frame.data) ? 'closed by hand' : (end ?? null);
};

interface RequestedMerge {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly isLive: boolean;
  /** The status of the task by now: a person may have closed it. */
  readonly status: string;
  /** As `endOfAttempt` returns it. */
  readonly end: string | null;
  readonly force: boolean;
  readonly isDiscarded: boolean;
  /** It had landed, and was taken back. */
  readonly isUndone: boolean;
  /** It lands by its pull request. */
  readonly isAtForge: boolean;
}

const commandForAnother = (status: string): string => {
  if (status === 'complete') return 'reopen';
  return status === 'failed' || status === 'cancelled' ? 'retry' : 'run';
};

/** Null when the work may be merged. */
export const refusesMerge = ({
  taskId,
  attempt,
  isLive,
  status,
  end,
  force,
  isDiscarded,
  isUndone,
  isAtForge,
}: RequestedMerge): Refusal | null => {
  const refuse = (state: string, allowed: readonly string[]): Refusal =>
    refusal('event_not_allowed', {
      task_id: taskId,
      event: 'merge',
      state: `${state} (attempt ${attempt})`,
      allowed,
    });
  if (isLive) return refuse('at work', ['cancel', 'merge it when it has ended']);
  if (isUndone && commandForAnother(status) === 'run')
    return refuse('open again since its work was undone', ['diff', 'run']);
  if (isDiscarded)
    return refuse(isUndone ? 'undone' : 'discarded', ['diff', commandForAnother(status)]);
  if (isAtForge && !force)
    return refuse('in an open pull request', ['pr', 'discard', 'merge --force']);
  if (force || end === 'complete') return null;
  return refuse(end ?? 'not complete', ['diff', commandForAnother(status), 'merge --force']);
};
