import type { Response } from '../../machines/agent-context.ts';
import { isServiceError, type Refusal, ServiceError } from '../../machines/errors.ts';
import type { Finding, Role, RunOptions, TaskId } from '../../machines/task.ts';
import { holderOf } from '../../machines/tracked-task.ts';
import { conflictsOf } from '../journal/snapshots.ts';
import type { TaskView } from '../journal/task-view.ts';
import type { Store } from '../store/port.ts';
import type { Tracker } from '../tracker/port.ts';
import { type Explanation, explain, type SlotUse } from './explain.ts';
import type { TaskCommands } from './task-commands.ts';
import { isFreeText, requireId } from './task-id.ts';
import { createTaskQueries, type TaskQueries } from './task-queries.ts';

export interface ExecuteRequest {
  /** A task id, or text: a task is created from it. */
  readonly task: string;
  readonly role: Role;
  readonly options: RunOptions;
  readonly requestId?: string;
}

/** Result of `execute` (CONTRACT 3). */
export interface Execution {
  readonly task_id: string;
  readonly role: Role;
  readonly status: string;
  readonly phase: string;
  readonly attempt: number;
  readonly message: string;
  readonly stream_url: string;
  readonly created_at: string;
}

/** Operations behind HTTP and JSON-RPC. They reject with `ServiceError` only. */
export interface TaskService extends TaskQueries {
  /** @throws task_not_found, dependencies_unmet, already_running, event_not_allowed, credential_missing, queue_full */
  execute(request: ExecuteRequest): Promise<Execution>;
  /** The guards with values and inputs, and the allowed events. @throws task_not_found */
  explain(taskId: string): Promise<Explanation>;
  close(taskId: string, reason: string | null): Promise<TaskView>;
  reopen(taskId: string, reason: string | null): Promise<TaskView>;
  cancel(taskId: string, reason: string | null): Promise<TaskView>;
  /**
   * Answers the open question. @throws task_not_found, event_not_allowed, stale_attempt,
   * invalid_params
   */
  respond(taskId: string, attempt: number, response: Response): Promise<TaskView>;
  retry(taskId: string, role: Role | null, options: RunOptions | null, reason: string | null): Promise<TaskView>;
}

export interface ServicePorts {
  readonly tracker: Tracker;
  readonly store: Store;
  readonly host: TaskCommands;
  readonly lookUp: (taskId: TaskId, options: RunOptions, role: Role) => Promise<Finding>;
  /** @throws invalid_params when a cost limit cannot be kept */
  readonly requirePrice: (options: RunOptions, role: Role) => Promise<void>;
  /** @throws invalid_params when the caller may not enable the network */
  readonly requireNetwork: (options: RunOptions) => void;
  /** Adds the role's verify commands. */
  readonly optionsFor: (options: RunOptions, role: Role) => RunOptions;
  readonly load: () => SlotUse;
  readonly maxRetries: () => number;
}

/** A request with the same id may run again in these phases: the first one was refused. */
const phasesWithoutRun: ReadonlySet<string> = new Set(['waiting_for_run', 'waiting_for_dependencies']);

export const createService = (ports: ServicePorts): TaskService => {
  const { tracker, store, host, lookUp, load, requirePrice, requireNetwork, optionsFor, maxRetries } = ports;
  const running = new Map<string, Promise<Execution>>();

  const catalogue = createTaskQueries({ tracker, store, viewOf: host.viewOf, knownTask: host.knownTask });

  const executionOf = (view: TaskView, role: Role): Execution => ({
    task_id: view.task_id,
    role: view.role ?? role,
    status: view.status,
    phase: view.phase,
    attempt: view.status === 'queued' ? view.attempt + 1 : view.attempt,
    message: `Agent ${view.role ?? role} ${view.status === 'queued' ? 'queued' : 'started'} for execution. Task ID: ${view.task_id}`,
    stream_url: view.stream_url,
    created_at: view.created_at,
  });

  /** `bd-a1 (failed: no disk)` */
  const statusPhrase = async (id: TaskId): Promise<string> => {
    const tracked = await tracker.find(id);
    if (tracked === null) return `${id} (which does not exist)`;
    const { status, error } = host.viewOf(tracked);
    return `${id} (${status}${error === undefined ? '' : `: ${error.message}`})`;
  };

  /** A repeated request finds the task that it created. */
  const create = async (description: string, requestId: string | undefined): Promise<TaskId> => {
    const taskId = (await catalogue.create({ description })).task_id as TaskId;
    if (requestId !== undefined) store.commit({ entries: [], request: { id: requestId, taskId } });
    return taskId;
  };

  const run = async ({ task, role, options, requestId }: ExecuteRequest): Promise<Execution> => {
    requireNetwork(options);
    await requirePrice(options, role);
    const taskId = isFreeText(task) ? await create(task, requestId) : requireId(task);
    const command = { type: 'run', role, options: optionsFor(options, role), maxRetries: maxRetries() } as const;
    try {
      return executionOf(await host.ask(taskId, command, requestId), role);
    } catch (error) {
      // With free text, the caller does not know the new task's id.
      if (!isServiceError(error)) throw error;
      throw ServiceError.from({ code: error.code, facts: { ...error.facts, task_id: taskId } } as Refusal);
    }
  };

  const runOnce = async (request: ExecuteRequest, requestId: string): Promise<Execution> => {
    const seen = store.request(requestId);
    if (seen?.answer != null) return JSON.parse(seen.answer) as Execution;
    if (seen !== null) {
      const view = await catalogue.status(seen.taskId);
      if (!phasesWithoutRun.has(view.phase)) return executionOf(view, request.role);
    }
    const execution = await run(seen === null ? request : { ...request, task: seen.taskId });
    store.rememberAnswer(requestId, JSON.stringify(execution));
    return execution;
  };

  /**
   * @throws tracker_conflict for a task that somebody else holds and no attempt of ours works on
   */
  const requireNotElsewhere = async (taskId: TaskId): Promise<void> => {
    const tracked = await tracker.find(taskId).catch(() => null);
    if (tracked === null || tracked.status === 'closed' || host.snapshotOf(taskId).hasTag('pending')) return;
    const holder = holderOf(tracked, tracker.actor);
    if (holder !== null) throw new ServiceError('tracker_conflict', { task_id: taskId, holder });
  };

  return {
    ...catalogue,
    execute: (request) => {
      const { requestId } = request;
      if (requestId === undefined) return run(request);
      const same = running.get(requestId) ?? runOnce(request, requestId).finally(() => running.delete(requestId));
      running.set(requestId, same);
      return same;
    },
    explain: async (taskId) => {
      const { task_id, awaiting } = await catalogue.status(taskId);
      const tracked = await tracker.find(task_id as TaskId).catch(() => null);
      const snapshot = host.snapshotOf(task_id as TaskId, tracked);
      const { options, role } = snapshot.context;
      const finding = await lookUp(task_id as TaskId, options, role ?? 'engineer');
      const blockers = await Promise.all(finding.unmet.map(statusPhrase));
      const conflicts = conflictsOf(store, task_id as TaskId, snapshot.context.attempt);
      return explain(snapshot, { finding, slots: load(), blockers, awaiting, conflicts });
    },
    close: async (taskId, reason) => host.ask(requireId(taskId), { type: 'close', reason }),
    reopen: async (taskId, reason) => host.ask(requireId(taskId), { type: 'reopen', reason }),
    cancel: async (taskId, reason) => {
      const id = requireId(taskId);
      await requireNotElsewhere(id);
      return host.ask(id, { type: 'cancel', reason });
    },
    respond: async (taskId, attempt, response) => {
      const view = await catalogue.status(taskId);
      return (await host.respond(view.task_id as TaskId, attempt, response)) ?? view;
    },
    retry: async (taskId, role, options, reason) => {
      const id = requireId(taskId);
      const last = host.snapshotOf(id).context;
      const next = role ?? last.role;
      // The configuration may have changed since the last attempt.
      requireNetwork(options ?? {});
      await requirePrice(options ?? last.options, next ?? 'engineer');
      const wanted = options === null || next === null ? options : optionsFor(options, next);
      return host.ask(id, { type: 'retry', role, options: wanted, maxRetries: maxRetries(), reason });
    },
  };
};
