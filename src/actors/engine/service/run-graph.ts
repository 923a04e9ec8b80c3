import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  describeRefusal,
  type ErrorCode,
  isServiceError,
  refusal,
  ServiceError,
} from '../../../machines/errors.ts';
import { isForPerson } from '../../../machines/for-person.ts';
import { roleInLabels } from '../../../machines/role-label.ts';
import { refuses } from '../../../machines/task/command-refusals.ts';
import type { TaskCommand } from '../../../machines/task/task-context.ts';
import type { TaskSnapshot } from '../../../machines/task/task-machine.ts';
import { type Role, type RunOptions, roles, type TaskId } from '../../../machines/task.ts';
import {
  holderOf,
  isTaken,
  statusInTracker,
  type TrackedTask,
} from '../../../machines/tracked-task.ts';
import type { TrackerInfo, TrackerReads } from '../../tracker/port.ts';
import {
  cycleReason,
  type OrderedTasks,
  openTasks,
  orderTasks,
  startOrder,
  withDependencies,
} from '../queries/task-graph.ts';
import { requireId } from '../queries/task-id.ts';
import type { TaskViews } from '../tasks/loaded-tasks.ts';
import { OwnedElsewhereError } from '../tasks/owned-elsewhere.ts';
import { createSharedCalls } from '../tasks/shared-calls.ts';
import { RepeatedRequestError } from '../tasks/task-commands.ts';
import { type ExecutePorts, nextOptions, runRequest } from './execute-task.ts';

export interface RunGraphRequest {
  /** With all that they depend on; absent: every task that is not complete. */
  readonly taskIds?: readonly string[];
  /** For tasks without a role of their own. */
  readonly role?: Role;
  readonly options: RunOptions;
  /**
   * The USD that all tasks together may cost, in place of `budget.run_usd`. A run that its tasks wait
   * in goes on: what it has cost counts.
   */
  readonly maxCostUsd?: number;
  /** Leaves only tasks with all of the labels, and with this priority. */
  readonly labels?: readonly string[];
  readonly priority?: number;
  /** At most as many start, with what they depend on; the first priority first. */
  readonly limit?: number;
  readonly requestId?: string;
  /** The name of the caller. */
  readonly by?: string | undefined;
}

/** Lists the tasks that a run would start, each after its dependencies. */
export interface PlannedRun {
  readonly tasks: readonly {
    readonly task_id: string;
    readonly role: Role;
    readonly model: string;
    /** Tasks that must be complete first, also those that the run skips. */
    readonly after: readonly string[];
  }[];
  readonly skipped: GraphRun['skipped'];
}

/** Why a task is skipped that no request of its own would start, or that needs something first. */
type SkipCode = 'complete' | 'no_role' | 'for_person' | 'approved';

export interface GraphRun {
  readonly accepted: readonly {
    readonly task_id: string;
    readonly role: Role;
    readonly phase: string;
  }[];
  readonly skipped: readonly {
    readonly task_id: string;
    readonly reason: string;
    /** The name of the reason. */
    readonly code: ErrorCode | SkipCode;
  }[];
}

interface RunGraphPorts extends Omit<ExecutePorts, 'queries' | 'tracker' | 'usedBudget'> {
  readonly tracker: Pick<TrackerReads, 'findMany' | 'page'> & Pick<TrackerInfo, 'actor'>;
  readonly views: Pick<TaskViews, 'snapshotOf' | 'viewOf'>;
  /** Tasks that may wait. */
  readonly queueLimit: () => number;
  readonly pendingCount: () => Promise<number>;
}

type Accepted = GraphRun['accepted'][number];
type SkippedTask = GraphRun['skipped'][number];

/** They share commits of the store. */
const startedAtOnce = 32;
/** The named tasks and all that they wait for. @throws task_not_found */
const namedTasks = async (
  { tracker }: RunGraphPorts,
  ids: readonly string[],
): Promise<readonly TrackedTask[]> => {
  const named = new Set(ids.map(requireId));
  const found = await withDependencies(tracker, [...named]);
  for (const id of named)
    if (!found.has(id)) throw new ServiceError('task_not_found', { task_id: id });
  return [...found.values()];
};

const labelledRole = async (
  { views }: RunGraphPorts,
  { id, labels }: TrackedTask,
  fallback: Role | undefined,
): Promise<Role | SkippedTask> => {
  const label = roleInLabels(labels);
  const labelled = roles.find((role) => role === label);
  if (labelled !== undefined) return labelled;
  if (label !== undefined) {
    const reason = describeRefusal(refusal('role_unknown', { role: label }));
    return { task_id: id, reason, code: 'role_unknown' };
  }
  if (isForPerson(labels)) {
    const reason = `a person does it; when it is done: agent close ${id}`;
    return { task_id: id, reason, code: 'for_person' };
  }
  const role = (await views.snapshotOf(id)).context.role ?? fallback;
  const reason = `it has no role; give it one: agent edit ${id} --role engineer, or all of them: agent run --role engineer`;
  return role ?? { task_id: id, reason, code: 'no_role' };
};

const isOverWithoutSuccess = (snapshot: TaskSnapshot): boolean =>
  snapshot.hasTag('failed') || snapshot.hasTag('cancelled');

const runCommandFor = (
  snapshot: TaskSnapshot,
  role: Role,
  options: RunOptions,
  maxRetries: number,
): Extract<TaskCommand, { readonly type: 'run' | 'retry' }> =>
  isOverWithoutSuccess(snapshot)
    ? { type: 'retry', role, options, maxRetries, reason: null }
    : { type: 'run', role, options, maxRetries };

/** A person took the work of an attempt that failed: a run of everything does not pay for it again. */
const isApproved = (snapshot: TaskSnapshot): boolean =>
  isOverWithoutSuccess(snapshot) && snapshot.context.review?.verdict === 'approve';
const approvedReason = (id: TaskId): string =>
  `its work is approved; take it with: agent merge ${id} --force, then agent close ${id}; or run it again: agent retry ${id}`;

/** A task of another server is at work. */
const refusalNow = async (
  { views }: RunGraphPorts,
  id: TaskId,
  role: Role,
  error: ServiceError,
): Promise<ServiceError> => {
  if (!(error instanceof OwnedElsewhereError)) return error;
  const command = { type: 'run', role, options: {}, maxRetries: 0, at: 0 } as const;
  const refused = refuses(await views.snapshotOf(id), null, command);
  return refused === null ? error : ServiceError.from(refused);
};

/** @throws what is no ServiceError */
const skippedFor = (task_id: TaskId, error: unknown): SkippedTask => {
  if (!isServiceError(error)) throw error;
  return { task_id, reason: error.message, code: error.code };
};

/** The way a run would begin with a task, or the reason why it does not. */
const runOf = async (
  ports: RunGraphPorts,
  { taskIds, role: fallback, options }: RunGraphRequest,
  task: TrackedTask,
): Promise<
  | SkippedTask
  | { readonly role: Role; readonly options: RunOptions; readonly snapshot: TaskSnapshot }
> => {
  const task_id = task.id;
  if (statusInTracker(task) === 'complete') {
    const reason = `it is complete; put it back with: agent reopen ${task_id}`;
    return { task_id, reason, code: 'complete' };
  }
  try {
    const role = await labelledRole(ports, task, fallback);
    if (typeof role !== 'string') return role;
    const snapshot = await ports.views.snapshotOf(task.id, task);
    const { actor } = ports.tracker;
    const holder = isTaken(task, actor) ? holderOf(task, actor) : null;
    if (holder !== null && !snapshot.hasTag('pending'))
      throw new ServiceError('tracker_conflict', { task_id: task.id, holder });
    if (taskIds === undefined && isApproved(snapshot))
      return { task_id, reason: approvedReason(task_id), code: 'approved' };
    const next = nextOptions(snapshot.context, role, options, ports.optionsFor);
    return { role, options: { ...next, when: 'ready', run: options.run }, snapshot };
  } catch (error) {
    // Its saved state may be broken.
    return skippedFor(task_id, error);
  }
};

/** Starts one task, or says why not. A repeated request finds what it started before. */
const createStartOne = async (ports: RunGraphPorts, request: RunGraphRequest) => {
  const { requestId } = request;
  const { commands, views, store } = ports;
  const limit = ports.queueLimit();
  let room = limit - (await ports.pendingCount());
  return async (task: TrackedTask): Promise<Accepted | SkippedTask> => {
    const task_id = task.id;
    const found = await runOf(ports, request, task);
    if ('reason' in found) return found;
    const { role, options, snapshot } = found;
    const ownRequest = requestId === undefined ? undefined : runRequest(requestId, task_id);
    const isRepeated = async (): Promise<boolean> =>
      ownRequest !== undefined && (await store.request(ownRequest)) !== null;
    const accepted = async () => ({ task_id, role, phase: (await views.viewOf(task)).phase });
    if (await isRepeated()) return accepted();
    if (room <= 0)
      return { task_id, reason: `the queue is full (${limit} tasks)`, code: 'queue_full' };
    room -= 1;
    try {
      await ports.requirePrice(options, role);
      const command = runCommandFor(snapshot, role, options, ports.maxRetries());
      const asked = { ...command, by: request.by };
      const { phase } = await commands.ask(task.id, asked, ownRequest);
      return { task_id, role, phase };
    } catch (error) {
      room += 1;
      if (error instanceof RepeatedRequestError) return accepted();
      if (error instanceof OwnedElsewhereError && (await isRepeated())) return accepted();
      return skippedFor(
        task_id,
        isServiceError(error) ? await refusalNow(ports, task.id, role, error) : error,
      );
    }
  };
};

/** The plan for one task, as far as it is known before the task is asked. */
const planOne = async (
  ports: RunGraphPorts,
  request: RunGraphRequest,
  task: TrackedTask,
): Promise<PlannedRun['tasks'][number] | SkippedTask> => {
  const task_id = task.id;
  const found = await runOf(ports, request, task);
  if ('reason' in found) return found;
  const { role, options, snapshot } = found;
  const command = runCommandFor(snapshot, role, options, 0);
  const refused = refuses(snapshot, null, { ...command, at: 0 });
  return refused === null
    ? { task_id, role, model: ports.modelOf(options, role), after: task.unmet }
    : { task_id, reason: describeRefusal(refused), code: refused.code };
};

/** Between two turns of the event loop. */
const stepsInTurn = 1_000;

const byPriority = (one: TrackedTask, other: TrackedTask): number => one.priority - other.priority;

/** The chosen tasks, and all that they wait for. */
const tasksOf = async (
  ports: RunGraphPorts,
  request: RunGraphRequest,
): Promise<readonly TrackedTask[]> => {
  const { taskIds, labels = [], priority, limit } = request;
  const all = await (taskIds === undefined ? openTasks(ports.tracker) : namedTasks(ports, taskIds));
  if (labels.length === 0 && priority === undefined && limit === undefined) return all;
  const byId = new Map(all.map((task) => [task.id, task]));
  const isChosen = (task: TrackedTask): boolean =>
    labels.every((label) => task.labels.includes(label)) &&
    (priority === undefined || task.priority === priority);
  const taken = new Map<TaskId, TrackedTask>();
  const startable = new Map<TaskId, boolean>();
  const starts = async (task: TrackedTask): Promise<boolean> => {
    const isPlanned = 'role' in (await planOne(ports, request, task));
    startable.set(task.id, isPlanned);
    return isPlanned;
  };
  let left = limit ?? Number.POSITIVE_INFINITY;
  const tooMany = new Set<TaskId>();
  let steps = 0;
  /** The task and all that it waits for, as far as it is not taken; null: more start than are left. */
  const missing = async (from: TrackedTask) => {
    const tasks = new Map<TaskId, TrackedTask>();
    let starting = 0;
    for (const next = [from]; next.length > 0; ) {
      const task = next.pop();
      if (task === undefined || tasks.has(task.id) || taken.has(task.id)) continue;
      if (++steps % stepsInTurn === 0) await nextTurn();
      // Tasks that cannot start are only named.
      if (limit !== undefined && (startable.get(task.id) ?? (await starts(task)))) starting += 1;
      if (starting > left || tooMany.has(task.id)) {
        tooMany.add(from.id);
        return null;
      }
      tasks.set(task.id, task);
      for (const id of task.unmet) next.push(...[byId.get(id)].filter((one) => one !== undefined));
    }
    return { tasks: [...tasks.values()], starting };
  };
  const { generations, cyclic } = orderTasks(all);
  for (const task of generations.flat().toSorted(byPriority).filter(isChosen)) {
    if (left <= 0) break;
    const found = await missing(task);
    if (found === null) continue;
    left -= found.starting;
    for (const one of found.tasks) taken.set(one.id, one);
  }
  // With the others of their cycle, without which they would look as if they could start.
  left = Number.POSITIVE_INFINITY;
  tooMany.clear();
  const stuck = new Set(cyclic.map(({ task }) => task.id));
  for (const { task } of cyclic.filter((one) => isChosen(one.task)))
    for (const one of (await missing(task))?.tasks ?? [])
      if (stuck.has(one.id)) taken.set(one.id, one);
  return [...taken.values()];
};

/** The last run at whose budget one of the tasks waits. */
const parkedRun = async (
  { views }: RunGraphPorts,
  tasks: readonly TrackedTask[],
): Promise<string | undefined> => {
  const runs: string[] = [];
  for (const task of tasks) {
    const { parked, options } = (await views.snapshotOf(task.id, task)).context;
    if (parked?.budget === 'run' && options.run !== undefined) runs.push(options.run.id);
  }
  return runs.toSorted().at(-1);
};

const skippedCycles = (cyclic: OrderedTasks<TrackedTask>['cyclic']): readonly SkippedTask[] =>
  cyclic.map(({ task, cycle }) => ({
    task_id: task.id,
    reason: cycleReason(task.id, cycle),
    code: 'dependency_cycle' as const,
  }));

/** What `startAll` would do, by the same rules, as far as they are known before a task is asked. */
const planAll = async (
  ports: RunGraphPorts,
  request: RunGraphRequest,
  chosen: readonly TrackedTask[],
): Promise<PlannedRun> => {
  const { generations, cyclic } = orderTasks(chosen);
  const tasks: PlannedRun['tasks'][number][] = [];
  const skipped: SkippedTask[] = [];
  for (const task of startOrder(generations.flat())) {
    const planned = await planOne(ports, request, task);
    if ('reason' in planned) skipped.push(planned);
    else tasks.push(planned);
  }
  return { tasks, skipped: [...skipped, ...skippedCycles(cyclic)] };
};

const startAll = async (
  ports: RunGraphPorts,
  request: RunGraphRequest,
  chosen: readonly TrackedTask[],
): Promise<GraphRun> => {
  const { generations, cyclic } = orderTasks(chosen);
  const startOne = await createStartOne(ports, request);
  const results: (Accepted | SkippedTask)[] = [];
  // A failed dependency is started again before its dependents look at it.
  for (const generation of generations.map((each) => each.toSorted(byPriority)))
    for (let n = 0; n < generation.length; n += startedAtOnce)
      results.push(...(await Promise.all(generation.slice(n, n + startedAtOnce).map(startOne))));
  return {
    accepted: results.flatMap((result) => ('phase' in result ? [result] : [])),
    skipped: [
      ...results.flatMap((result) => ('reason' in result ? [result] : [])),
      ...skippedCycles(cyclic),
    ],
  };
};

/** Starts tasks with all that they depend on, each when its dependencies are complete. */
export const createRunGraph = (
  ports: RunGraphPorts,
): {
  readonly run: (request: RunGraphRequest) => Promise<GraphRun>;
  /** Starts nothing. */
  readonly plan: (request: RunGraphRequest) => Promise<PlannedRun>;
} => {
  const { store } = ports;
  const repeated = createSharedCalls<GraphRun>();

  const checked = async (request: RunGraphRequest) => {
    ports.requireNetwork(request.options);
    const tasks = await tasksOf(ports, request);
    const goesOn = request.maxCostUsd === undefined ? undefined : await parkedRun(ports, tasks);
    const options = ports.withRun(request.options, request.maxCostUsd, goesOn);
    await ports.requirePrice(options, request.role ?? 'engineer');
    return { request: { ...request, options }, tasks };
  };
  const run = async (given: RunGraphRequest): Promise<GraphRun> => {
    const { request, tasks } = await checked(given);
    return startAll(ports, request, tasks);
  };
  const runOnce = async (request: RunGraphRequest, requestId: string): Promise<GraphRun> => {
    const key = `run/${requestId}`;
    const answer = (await store.request(key))?.answer ?? null;
    if (answer !== null) return JSON.parse(answer) as GraphRun;
    const started = await run(request);
    const taskId = [...started.accepted, ...started.skipped][0]?.task_id;
    if (taskId === undefined) return started;
    return JSON.parse(await store.rememberAnswer(key, taskId, JSON.stringify(started))) as GraphRun;
  };
  return {
    run: (request) => {
      const { requestId } = request;
      return requestId === undefined
        ? run(request)
        : repeated.run(requestId, () => runOnce(request, requestId));
    },
    plan: async (given) => {
      const { request, tasks } = await checked(given);
      return planAll(ports, request, tasks);
    },
  };
};
