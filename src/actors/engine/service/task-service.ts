import type { Response } from '../../../machines/agent/agent-context.ts';
import { ServiceError } from '../../../machines/errors.ts';
import { isForPerson } from '../../../machines/for-person.ts';
import type { SupervisorContext } from '../../../machines/supervisor/supervisor-context.ts';
import type { Finding, Role, RunOptions, TaskId } from '../../../machines/task.ts';
import { holderOf, isTaken } from '../../../machines/tracked-task.ts';
import { decisionData, entry } from '../../journal/event-types.ts';

import { conflictsOf } from '../../journal/snapshots.ts';
import type { TaskView } from '../../journal/task-view.ts';
import { requestData } from '../../journal/transition-frames.ts';
import type { Answer, NewEntry, Store, StoreReads } from '../../store/port.ts';
import type { StatusWrites, TrackerInfo, TrackerReads, TrackerWrites } from '../../tracker/port.ts';
import type { Changes, DiffPart, Workspace } from '../../workspace/port.ts';
import type { MergeSettings } from '../attempts/settings.ts';
import { createIssueImport, type ForgeOf, type IssueImport } from '../importing/import-issues.ts';
import type { SourceStates } from '../importing/source-states.ts';
import type { MergeQueue } from '../merging/merge-queue.ts';
import type { TrainProof } from '../merging/prove-train.ts';
import { createMergeRequests, type MergeRequests } from '../merging/request-merges.ts';
import { createRunningUpdates, createUpdate, type TaskUpdates } from '../merging/update-task.ts';
import { explainPullRequest } from '../publishing/explain-pull-request.ts';
import type { Publishing } from '../publishing/pull-requests.ts';
import { type Explanation, explain, type SlotUse } from '../queries/explain.ts';
import { takeBack } from '../queries/offline-tasks.ts';
import { requireAgents, requireAnswer } from '../queries/require-answer.ts';
import { cycleReason, orderTasks, withDependencies } from '../queries/task-graph.ts';
import { requireId } from '../queries/task-id.ts';
import { createTaskQueries, type TaskQueries } from '../queries/task-queries.ts';
import type { TaskViews } from '../tasks/loaded-tasks.ts';
import type { TaskCommands } from '../tasks/task-commands.ts';
import {
  createExecute,
  type ExecutePorts,
  type ExecuteRequest,
  type Execution,
  nextOptions,
} from './execute-task.ts';

import { createReview, type TaskReviews } from './review-task.ts';
import {
  createRunGraph,
  type GraphRun,
  type PlannedRun,
  type RunGraphRequest,
} from './run-graph.ts';

type OfAttempt = { readonly task_id: string; readonly attempt: number };

/** The changes of attempts. They reject with `ServiceError` only. */
interface AttemptChanges {
  /**
   * The changes of the latest attempt, or of a given one; also while it runs.
   * @throws task_not_found, event_not_allowed
   */
  diff(taskId: string, attempt: number | null, part?: DiffPart): Promise<OfAttempt & Changes>;
  /**
   * The work of an attempt is not offered, merged or built on any more; its branch stays.
   * @throws task_not_found, event_not_allowed
   */
  discard(taskId: string, attempt: number | null, reason: string | null): Promise<TaskView>;
}

interface AttemptChangesPorts {
  readonly workspace: Pick<Workspace, 'diff' | 'discard' | 'workOf'>;
  readonly merges: Pick<MergeQueue, 'withdraw'>;
  readonly status: (taskId: string) => Promise<TaskView>;
  readonly record: (entry: NewEntry) => Answer<void>;
  readonly now: () => number;
}

const noWork = (task_id: TaskId, event: 'diff' | 'discard', state: string): ServiceError =>
  new ServiceError('event_not_allowed', { task_id, event, state, allowed: ['run'] });

const createAttemptChanges = ({
  workspace,
  merges,
  status,
  record,
  now,
}: AttemptChangesPorts): AttemptChanges => ({
  diff: async (given, attempt, part) => {
    const { task_id, status: state } = await status(given);
    const id = requireId(task_id);
    const changes = await workspace.diff(id, attempt, part);
    if (changes === null) throw noWork(id, 'diff', `${state}, without a branch of an attempt`);
    return { task_id: id, ...changes };
  },
  discard: async (given, wanted, reason) => {
    const task = await status(given);
    const id = requireId(task.task_id);
    const attempt = wanted ?? task.attempt;
    const refuse = (state: string, allowed: readonly string[]): ServiceError =>
      new ServiceError('event_not_allowed', { task_id: id, event: 'discard', state, allowed });
    if (task.status === 'started' && task.held_by === undefined && attempt === task.attempt)
      throw refuse(`at work (attempt ${attempt})`, ['cancel', 'discard it when it has ended']);
    const before = await workspace.workOf(id, attempt);
    const holder = before === null ? task.held_by : undefined;
    if (holder !== undefined) throw new ServiceError('tracker_conflict', { task_id: id, holder });
    const found = await workspace.discard(id, attempt, reason);
    if (found === null)
      throw noWork(id, 'discard', `${task.status}, without saved work of attempt ${attempt}`);
    if (found === 'merged') throw refuse(`merged (attempt ${attempt})`, ['diff']);
    if (before?.discarded_at === undefined) {
      const message = `its work was discarded${reason === null ? '' : `: ${reason}`}`;
      const said = reason === null ? {} : { said: reason };
      const data = decisionData({ kind: 'discarded', ...said }, message);
      await record(entry(id, attempt, 'log', now(), data));
    }
    await merges.withdraw(id, { why: 'it was discarded', run_again: true });
    return status(id);
  },
});

/** What a person says to the agent of a task. */
interface AgentMessages {
  /**
   * Answers the open question. @throws task_not_found, event_not_allowed, stale_attempt,
   * invalid_params
   */
  respond(taskId: string, attempt: number, response: Response): Promise<TaskView>;
  /**
   * Tells the agent of a task that is at work; it reads this once, at its next turn.
   * @throws task_not_found, event_not_allowed, invalid_params
   */
  tell(taskId: string, text: string, requestId?: string): Promise<void>;
}

/** Operations behind HTTP and JSON-RPC. They reject with `ServiceError` only. */
export interface TaskService
  extends TaskQueries,
    AttemptChanges,
    MergeRequests,
    TaskReviews,
    TaskUpdates,
    Publishing,
    IssueImport,
    AgentMessages {
  /**
   * @throws task_not_found, dependencies_unmet, already_running, event_not_allowed,
   * credential_missing, queue_full
   */
  execute(request: ExecuteRequest): Promise<Execution>;
  /**
   * Starts tasks with all that they depend on, each when its dependencies are complete.
   * @throws task_not_found
   */
  run(request: RunGraphRequest): Promise<GraphRun>;
  /** What `run` would start. @throws task_not_found */
  plan(request: RunGraphRequest): Promise<PlannedRun>;
  /** The guards with values and inputs, and the allowed events. @throws task_not_found */
  explain(taskId: string): Promise<Explanation>;
  /** How the sources of the configuration stand. */
  sources(): Promise<SourceStates>;
  close(taskId: string, reason: string | null): Promise<TaskView>;
  reopen(taskId: string, reason: string | null): Promise<TaskView>;
  /**
   * Also ends the update of a task at rest, or takes its work out of the merge queue, and gives up a
   * queue that cannot be restored.
   */
  cancel(taskId: string, reason: string | null): Promise<TaskView>;
  retry(
    taskId: string,
    role: Role | null,
    options: RunOptions | null,
    reason: string | null,
    by?: string,
  ): Promise<TaskView>;
}

interface ServicePorts extends Omit<ExecutePorts, 'commands' | 'queries'> {
  readonly store: ExecutePorts['store'] & StoreReads & Pick<Store, 'images'>;
  readonly tracker: TrackerInfo & TrackerReads & TrackerWrites & Pick<StatusWrites, 'reopen'>;
  readonly commands: TaskCommands;
  readonly views: TaskViews;
  readonly lookUp: (taskId: TaskId, options: RunOptions, role: Role) => Promise<Finding>;
  readonly slotUse: () => SlotUse;
  readonly supervisor: () => SupervisorContext;
  /** The answer comes when it is committed. */
  readonly record: (entry: NewEntry) => Answer<void>;
  readonly now: () => number;
  readonly workspace: Pick<
    Workspace,
    'diff' | 'discard' | 'workOf' | 'bringWork' | 'update' | 'keepUpdate'
  >;
  readonly proof: Pick<TrainProof, 'proveWork' | 'attemptOf'>;
  readonly merges: Pick<MergeQueue, 'merge' | 'plan' | 'giveUp' | 'isIn' | 'withdraw'>;
  readonly publishing: Publishing;
  readonly forgeOf: ForgeOf;
  readonly sources: () => Promise<SourceStates>;
  /** To the server that has the task. */
  readonly tell: (taskId: string, text: string, requestId: string) => Promise<void>;
  readonly landing: () => MergeSettings;
  readonly projectRoot: () => string;
}

const createExplain = (
  { tracker, store, views, lookUp, slotUse, supervisor }: ServicePorts,
  queries: Pick<TaskService, 'status'>,
): TaskService['explain'] => {
  /** `bd-a1 (failed: no disk; run it again with: agent retry bd-a1)` */
  const statusPhrase = async (id: TaskId): Promise<string> => {
    const tracked = await tracker.find(id);
    if (tracked === null) return `${id} (which does not exist)`;
    const { status, error, held_by: holder } = await queries.status(id);
    if (holder !== undefined)
      return `${id} (held by ${holder}; release it with: agent reopen ${id})`;
    const why = error === undefined ? '' : `: ${error.message}`;
    const isOver = status === 'failed' || status === 'cancelled';
    return `${id} (${status}${why}${isOver ? `; run it again with: agent retry ${id}` : ''})`;
  };

  return async (taskId) => {
    const { task_id, awaiting, phase, pull_request } = await queries.status(taskId);
    const id = requireId(task_id);
    const tracked = await tracker.find(id).catch(() => null);
    const snapshot = await views.snapshotOf(id, tracked);
    const { options, attempt } = snapshot.context;
    const role = snapshot.context.role ?? 'engineer';
    const finding = await lookUp(id, options, role);
    const blockers = await Promise.all(finding.unmet.map(statusPhrase));
    const { cyclic } = orderTasks([...(await withDependencies(tracker, [id])).values()]);
    const found = cyclic.find(({ task }) => task.id === id);
    const cycle = found === undefined ? null : cycleReason(id, found.cycle);
    const conflicts = await conflictsOf(store, id, attempt);
    const isPersons = isForPerson(tracked?.labels ?? []);
    const explained = explain(snapshot, {
      finding,
      role,
      blockers,
      cycle,
      awaiting,
      phase,
      conflicts,
      isPersons,
      slots: slotUse(),
      supervisor: supervisor(),
    });
    if (pull_request === undefined) return explained;
    return { ...explained, pull_request: await explainPullRequest(store, id, pull_request) };
  };
};

const namesOnlyAmount = (options: RunOptions | null): boolean =>
  Object.values(options ?? {}).filter((value) => value !== undefined).length === 1;

export const createTaskService = (ports: ServicePorts): TaskService => {
  const { tracker, store, commands, views, requirePrice, requireNetwork, optionsFor } = ports;
  const updates = createRunningUpdates();
  const queries = createTaskQueries({
    tracker,
    store,
    viewOf: views.viewOf,
    record: ports.record,
    now: ports.now,
    knownTask: views.knownTask,
    workOf: updates.withRunning(ports.workspace.workOf),
    bringWork: ports.workspace.bringWork,
    tell: ports.tell,
  });

  /**
   * @throws tracker_conflict for a task that somebody else holds and no attempt of ours works on
   */
  const requireNotElsewhere = async (taskId: TaskId): Promise<void> => {
    const tracked = await tracker.find(taskId).catch(() => null);
    if (tracked === null || tracked.status === 'closed') return;
    const holder = holderOf(tracked, tracker.actor);
    if (holder !== null && !(await views.snapshotOf(taskId)).hasTag('pending'))
      throw new ServiceError('tracker_conflict', { task_id: taskId, holder });
  };

  /**
   * The run of a retry with an amount, where the budget of its run is used up: a parked attempt goes on
   * in that run, which may cost the amount, another one in a run of its own. Null: it is not used up.
   */
  const raisedBudget = async (
    last: RunOptions,
    amount: number | undefined,
    isParked: boolean,
  ): Promise<RunOptions['run'] | null> => {
    if (amount === undefined || (await ports.usedBudget(last))?.budget !== 'run') return null;
    return ports.withRun({}, amount, isParked ? last.run?.id : undefined).run;
  };

  /** Its work cannot land any more, and a test of it would hold up others. */
  const withoutMerge = async (id: TaskId, view: TaskView): Promise<TaskView> => {
    const why = 'its task is not complete any more';
    if (view.status !== 'complete') await ports.merges.withdraw(id, { why, reopened: true });
    return view;
  };
  const askReview = createReview(ports);
  const review: TaskReviews['review'] = async (taskId, request) =>
    withoutMerge(requireId(taskId), await askReview(taskId, request));

  return {
    ...queries,
    ...createAttemptChanges({ ...ports, status: queries.status }),
    ...createMergeRequests({
      ...ports,
      status: queries.status,
      list: queries.list,
      runBy: async (taskId) => (await views.snapshotOf(taskId)).context.runBy ?? [],
    }),
    execute: createExecute({ ...ports, queries }),
    ...createRunGraph({
      ...ports,
      queueLimit: () => ports.slotUse().queueLimit,
      pendingCount: async () => store.pendingCount(),
    }),
    ...createIssueImport(ports.forgeOf, queries.import),
    sources: ports.sources,
    publish: ports.publishing.publish,
    pullRequest: ports.publishing.pullRequest,
    explain: createExplain(ports, queries),
    close: async (taskId, reason) => {
      const id = requireId(taskId);
      requireAnswer(await tracker.find(id).catch(() => null), reason);
      return commands.ask(id, { type: 'close', reason });
    },
    reopen: async (taskId, reason) => {
      const id = requireId(taskId);
      const tracked = await tracker.find(id).catch(() => null);
      const snapshot = await views.snapshotOf(id, tracked);
      if (tracked === null || !isTaken(tracked, tracker.actor) || snapshot.hasTag('pending'))
        return withoutMerge(id, await commands.ask(id, { type: 'reopen', reason }));
      await takeBack(tracker, id, reason);
      const data = requestData('reopen', reason);
      await ports.record(entry(id, snapshot.context.attempt, 'log', ports.now(), data));
      return queries.status(id);
    },
    cancel: async (taskId, reason) => {
      const id = requireId(taskId);
      const givenUp = await ports.merges.giveUp(id);
      if (givenUp !== null) return givenUp;
      await requireNotElsewhere(id);
      // A state that cannot be read is given up.
      const snapshot = await views.snapshotOf(id).catch(() => null);
      if (snapshot === null || snapshot.hasTag('pending'))
        return commands.ask(id, { type: 'cancel', reason });
      const isStopped = updates.stop(id);
      const why = 'a person took it out of the merge queue';
      if (!isStopped && !(await ports.merges.withdraw(id, { why })))
        return commands.ask(id, { type: 'cancel', reason });
      const did = isStopped ? 'a person ended its update' : why;
      const message = `${did}${reason === null ? '' : `: ${reason}`}`;
      const data = { level: 'info', message };
      await ports.record(entry(id, snapshot.context.attempt, 'log', ports.now(), data));
      return queries.status(id);
    },
    respond: async (taskId, attempt, response) => {
      const view = await queries.status(taskId);
      return (await commands.respond(requireId(view.task_id), attempt, response)) ?? view;
    },
    tell: async (taskId, text, requestId) => {
      const { task_id } = await queries.status(taskId);
      return commands.tell(requireId(task_id), text, requestId ?? null);
    },
    review,
    update: createUpdate({ ...ports, updates, status: queries.status, review }),
    retry: async (taskId, role, options, reason, by) => {
      const id = requireId(taskId);
      await requireNotElsewhere(id);
      const snapshot = await views.snapshotOf(id);
      const last = snapshot.context;
      const next = role ?? last.role;
      if (next !== null) requireAgents(await tracker.find(id).catch(() => null), 'retry');
      // The configuration may have changed since the last attempt.
      requireNetwork(options ?? {});
      const given =
        options === null || next === null ? options : nextOptions(last, next, options, optionsFor);
      const kept = given ?? last.options;
      const isParked = snapshot.hasTag('parked');
      const raised = await raisedBudget(last.options, options?.maxCostUsd, isParked);
      // A retry stays in its run: it does not pass a budget that is used up. One that is parked goes on.
      const hasRun = kept.run !== undefined || isParked;
      const own = raised !== null ? { ...kept, run: raised } : hasRun ? kept : ports.withRun(kept);
      await requirePrice(own, next ?? 'engineer');
      const isSame = isParked && next === last.role && namesOnlyAmount(options);
      if (raised !== null && isSame && next !== null)
        return commands.ask(id, {
          type: 'run',
          role: next,
          options: { ...last.options, run: raised },
          maxRetries: ports.maxRetries(),
          by,
        });
      return commands.ask(id, {
        type: 'retry',
        role,
        options: own === kept ? given : own,
        maxRetries: ports.maxRetries(),
        reason,
        by,
      });
    },
  };
};
