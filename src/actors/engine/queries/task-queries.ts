import { isDeepStrictEqual } from 'node:util';
import { ServiceError } from '../../../machines/errors.ts';
import { workflowLabels } from '../../../machines/for-person.ts';
import { statusAndPhase } from '../../../machines/phase.ts';
import type { Acceptance } from '../../../machines/task/task-context.ts';
import { finalStatuses, type TaskId } from '../../../machines/task.ts';
import { holderOf, isTaken, type TrackedTask } from '../../../machines/tracked-task.ts';
import type { ImageData, ImageFacts } from '../../files/image.ts';
import { type Decided, decidedIn, entry } from '../../journal/event-types.ts';

import type { TaskView } from '../../journal/task-view.ts';
import { endLabels } from '../../ledger/issue.ts';
import type { Answer, NamedImage, NewEntry, Store, StoreReads } from '../../store/port.ts';
import type {
  StatusWrites,
  TaskFields,
  TrackerInfo,
  TrackerReads,
  TrackerWrites,
} from '../../tracker/port.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { WorkReads } from '../../workspace/worktrees/work-view.ts';
import { createImport, type HowToImport, type Imported } from '../importing/import-tasks.ts';
import type { ImportItem } from '../importing/order-items.ts';
import { withPullRequests } from '../publishing/pull-request-view.ts';
import { createAttaching } from './attach-images.ts';
import { type ListRequest, listTasks, type TaskPage } from './list-tasks.ts';
import { createTaskHistories, type TaskHistories } from './task-histories.ts';
import { requireId, requireIds } from './task-id.ts';
import { type UsageReport, usageOf, withDetails } from './task-usage.ts';

interface TaskEdits {
  /** Labels replace those that people gave; those of a workflow stay. @throws task_not_found, invalid_params */
  edit(taskId: string, fields: TaskFields): Promise<TaskView>;
  /**
   * The task as it was last. @throws task_not_found; event_not_allowed while an attempt is live or
   * other tasks depend on it
   */
  delete(taskId: string): Promise<TaskView>;
}

interface TaskEditPorts {
  readonly tracker: Pick<TrackerWrites, 'edit' | 'remove'>;
  readonly store: (Pick<StoreReads, 'actor'> & Pick<Store, 'images'>) | null;
  readonly find: (taskId: string) => Promise<TrackedTask>;
  readonly viewOf: (tracked: TrackedTask) => Promise<TaskView>;
  readonly record: (entry: NewEntry) => Answer<void>;
  readonly now: () => number;
}

/** @throws invalid_params */
const requireEditable = (
  { title, description, labels = [] }: TaskFields,
  ofWorkflow: readonly string[],
): void => {
  const empty = Object.entries({ title, description }).find(([, text]) => text?.trim() === '');
  const problem = (path: string, text: string) =>
    new ServiceError('invalid_params', { fields: [{ path, problem: text }] });
  if (empty !== undefined) throw problem(empty[0], 'is empty');
  const given = labels.find((label) => endLabels.includes(label));
  if (given !== undefined)
    throw problem('labels', `${given} says how an attempt ended; the service gives it`);
  const says = ofWorkflow.length > 0 ? 'who does a step' : 'to which workflow a task belongs';
  const changed = labels.find(
    (label) =>
      !ofWorkflow.includes(label) && workflowLabels([...ofWorkflow, label]).includes(label),
  );
  if (changed !== undefined)
    throw problem('labels', `${changed} says ${says}; the workflow gives it`);
};

/** A form sends all of its fields. */
const changedFields = (
  fields: TaskFields,
  before: TrackedTask,
  after: TrackedTask,
): readonly string[] =>
  (Object.keys(fields) as (keyof TaskFields)[]).filter(
    (name) => !isDeepStrictEqual(before[name], after[name]),
  );

const createTaskEdits = (ports: TaskEditPorts): TaskEdits => {
  const { tracker, store, find, viewOf, record, now } = ports;

  const note = ({ task_id, attempt }: TaskView, message: string, facts: object): Answer<void> =>
    record(entry(task_id, attempt, 'log', now(), { level: 'info', message, ...facts }));

  /** Queued for a slot, at work, or between two attempts. */
  const requireAtRest = async (
    id: TaskId,
    { status, phase, held_by: holder }: TaskView,
  ): Promise<void> => {
    if (holder !== undefined) throw new ServiceError('tracker_conflict', { task_id: id, holder });
    if (status !== 'started' && (await store?.actor(id))?.pending !== true) return;
    throw new ServiceError('event_not_allowed', {
      task_id: id,
      event: 'delete',
      state: statusAndPhase(status, phase),
      allowed: ['cancel'],
    });
  };

  return {
    edit: async (taskId, fields) => {
      const id = requireId(taskId);
      const before = await find(taskId);
      const ofWorkflow = workflowLabels(before.labels);
      requireEditable(fields, ofWorkflow);
      const { labels } = fields;
      const { refusal } = await tracker.edit(id, {
        ...fields,
        ...(labels === undefined ? {} : { labels: [...new Set([...labels, ...ofWorkflow])] }),
      });
      if (refusal !== null) throw ServiceError.from(refusal);
      const after = await find(taskId);
      const view = await viewOf(after);
      const names = changedFields(fields, before, after);
      if (names.length > 0) await note(view, `edited: ${names.join(', ')}`, { edited: names });
      return view;
    },
    delete: async (taskId) => {
      const tracked = await find(taskId);
      const view = await viewOf(tracked);
      await requireAtRest(tracked.id, view);
      const { refusal } = await tracker.remove(tracked.id);
      if (refusal !== null) throw ServiceError.from(refusal);
      await store?.images.forget(tracked.id);
      await note(view, 'deleted', { deleted: true });
      return view;
    },
  };
};

export interface CreateRequest {
  readonly description: string;
  readonly title?: string;
  readonly dependencies?: readonly string[];
  readonly priority?: number;
  readonly labels?: readonly string[];
  /** Uploaded images. */
  readonly attachments?: readonly NamedImage[];
}

interface DecidedList {
  readonly decisions: readonly Decided[];
}

const decisionsAtOnce = 50;

/** Operations that need no agent, so no server. They reject with `ServiceError` only. */
export interface TaskQueries extends TaskEdits, TaskHistories {
  /**
   * One task for each `requestId`. @throws invalid_params, task_not_found (a dependency),
   * tracker_unavailable
   */
  create(request: CreateRequest, requestId?: string): Promise<TaskView>;
  /**
   * Makes tasks of items that are none yet. What was imported before follows its source.
   * @throws invalid_params, tracker_unavailable
   */
  import(items: readonly ImportItem[], how: HowToImport): Promise<Imported>;
  /** Keeps an image for `create`. @throws invalid_params for bytes that are none, or too many */
  upload(bytes: Buffer): Promise<ImageFacts>;
  /** An image of a task. @throws task_not_found, also for an image that the task does not have */
  image(taskId: string, digest: string): Promise<ImageData>;
  /** @throws task_not_found */
  status(taskId: string): Promise<TaskView>;
  /** `status: queued`: tasks whose dependencies are complete. */
  list(request: ListRequest): Promise<TaskPage>;
  /** Decisions of people, the last one first. */
  decisions(limit: number | null): Promise<DecidedList>;
  /** Sums over attempts that ended, per day (UTC) and role, from the day `since`. */
  usage(since: string | null): Promise<UsageReport>;
  /** The first task depends on the second. @throws task_not_found, dependency_cycle */
  addDependency(taskId: string, dependsOn: string): Promise<TaskView>;
  /** @throws task_not_found */
  removeDependency(taskId: string, dependsOn: string): Promise<TaskView>;
}

interface TaskQueryPorts {
  readonly tracker: Pick<TrackerInfo, 'actor'> &
    TrackerReads &
    TrackerWrites &
    Pick<StatusWrites, 'reopen'>;
  /** Null in a project without runs. */
  readonly store:
    | (Pick<
        StoreReads,
        | 'read'
        | 'kept'
        | 'decisions'
        | 'actor'
        | 'actors'
        | 'tasks'
        | 'openHosted'
        | 'removed'
        | 'usage'
        | 'spent'
        | 'attempts'
      > &
        Pick<Store, 'images'>)
    | null;
  readonly viewOf: (tracked: TrackedTask) => Promise<TaskView>;
  /** Commits an entry to the journal, soon. */
  readonly record: (entry: NewEntry) => Answer<void>;
  readonly now: () => number;
  readonly workOf: WorkReads;
  /** `Workspace.bringWork` */
  readonly bringWork?: Workspace['bringWork'];
  /** `AgentMessages.tell`; absent where no agent works. */
  readonly tell?: (taskId: string, text: string, requestId: string) => Promise<void>;
  /** A live task as the tracker had it last, for outages. */
  readonly knownTask?: (taskId: TaskId) => TrackedTask | null;
}

const titleBytes = 500;

/** A line of text: not the fence of a block, not a bracket alone. */
const isTextLine = (line: string): boolean =>
  /[\p{L}\p{N}]/u.test(line) && !/^(```|~~~)/.test(line);

/** The first line of text, cut to the bytes of a title. */
export const titleFrom = (description: string): string => {
  const lines = description
    .trim()
    .split(/\r?\n/)
    .map((each) => each.trim());
  const line = lines.find(isTextLine) ?? lines[0] ?? '';
  const characters = [...line];
  while (Buffer.byteLength(characters.join('')) > titleBytes)
    characters.length = Math.floor(characters.length * 0.9);
  return characters.join('');
};

type Find = (taskId: string) => Promise<TrackedTask>;

/** @throws task_not_found; tracker_unavailable also when the task may be in a line that is broken */
const createFind =
  (
    tracker: Pick<TrackerReads, 'find' | 'unreadable'>,
    knownTask: TaskQueryPorts['knownTask'],
  ): Find =>
  async (taskId: string): Promise<TrackedTask> => {
    const id = requireId(taskId);
    const known = (): TrackedTask | null => knownTask?.(id) ?? null;
    const found = await tracker.find(id).catch((error: unknown) => {
      if (known() === null) throw error;
      return null;
    });
    const tracked = found ?? known();
    if (tracked !== null) return tracked;
    const detail = await tracker.unreadable();
    // The task may be in an unreadable line.
    if (detail !== null)
      throw new ServiceError('tracker_unavailable', { detail, remedy: 'mend or remove that line' });
    throw new ServiceError('task_not_found', { task_id: taskId });
  };

/** @returns the description. @throws invalid_params */
const requireCreatable = (request: CreateRequest): string => {
  const description = request.description.trim();
  if (description === '')
    throw new ServiceError('invalid_params', {
      fields: [{ path: 'description', problem: 'is empty' }],
    });
  const given = request.labels?.find((label) => endLabels.includes(label));
  if (given !== undefined)
    throw new ServiceError('invalid_params', {
      fields: [
        { path: 'labels', problem: `${given} says how an attempt ended; the service gives it` },
      ],
    });
  return description;
};

export const createTaskQueries = ({
  tracker,
  store,
  viewOf: bareView,
  record,
  now,
  knownTask,
  workOf,
  bringWork = null,
  tell = async () => {},
}: TaskQueryPorts): TaskQueries => {
  const viewOf = async (tracked: TrackedTask): Promise<TaskView> => {
    const seen = await bareView(tracked);
    const { status, phase, error } = seen;
    const holder = holderOf(tracked, tracker.actor);
    // Released since a run was refused.
    const isFree = status === 'queued' && holder === null && error?.code === 'tracker_conflict';
    const view = isFree ? { ...seen, error: undefined } : seen;
    const isOurs = status === 'started' && phase !== status;
    return holder === null || isOurs || !isTaken(tracked, tracker.actor)
      ? view
      : { ...view, held_by: holder };
  };
  const find = createFind(tracker, knownTask);
  const attaching = createAttaching({ store, record, now, remove: tracker.remove });
  const changed = async (taskId: string, change: Promise<Acceptance>): Promise<TaskView> => {
    const { refusal } = await change;
    if (refusal !== null) throw ServiceError.from(refusal);
    return viewOf(await find(taskId));
  };
  const edits = createTaskEdits({ tracker, store, find, viewOf, record, now });
  return {
    import: createImport({ tracker, viewOf, edit: edits.edit, tell }),
    addDependency: async (taskId, dependsOn) =>
      changed(taskId, tracker.addDependency(requireId(taskId), requireId(dependsOn))),
    removeDependency: async (taskId, dependsOn) =>
      changed(taskId, tracker.removeDependency(requireId(taskId), requireId(dependsOn))),
    create: async (request, requestId) => {
      const description = requireCreatable(request);
      const task = {
        title: request.title?.trim() || titleFrom(description),
        description,
        priority: request.priority ?? 2,
        labels: request.labels ?? [],
        dependencies: requireIds(request.dependencies ?? []),
      };
      const attach = await attaching.prepare(request.attachments ?? []);
      const tracked = await tracker.create(task, requestId);
      const attachments = await attach(tracked.id);
      const view = await viewOf(tracked);
      return attachments.length === 0 ? view : { ...view, attachments };
    },
    upload: attaching.upload,
    image: async (taskId, digest) => {
      const { id } = await find(taskId);
      const found = (await store?.images.find(id, digest)) ?? null;
      if (found === null) throw new ServiceError('task_not_found', { task_id: `${id}/${digest}` });
      return found;
    },
    status: async (taskId) => {
      const view = await viewOf(await find(taskId));
      if (view.attempt > 0 && finalStatuses.has(view.status))
        await bringWork?.(view.task_id as TaskId, view.attempt);
      const [seen = view] = await withPullRequests(store, [await withDetails(store, workOf, view)]);
      return seen;
    },
    decisions: async (limit) => ({
      decisions: ((await store?.decisions(limit ?? decisionsAtOnce)) ?? []).flatMap(decidedIn),
    }),
    usage: async (since) => usageOf(store, since, now()),
    list: (request) => listTasks({ tracker, store, viewOf, workOf }, request),
    ...edits,
    ...createTaskHistories(store, find),
  };
};
