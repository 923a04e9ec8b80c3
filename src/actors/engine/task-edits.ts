import { isDeepStrictEqual } from 'node:util';
import { ServiceError } from '../../machines/errors.ts';
import { workflowLabels } from '../../machines/for-person.ts';
import { statusAndPhase } from '../../machines/phase.ts';
import type { TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { entry } from '../journal/event-types.ts';
import type { TaskView } from '../journal/task-view.ts';
import { endLabels } from '../ledger/issue.ts';
import type { Answer, NewEntry, StoreReads } from '../store/port.ts';
import type { TaskFields, TrackerWrites } from '../tracker/port.ts';
import { requireId } from './task-id.ts';

export interface TaskEdits {
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
  readonly store: Pick<StoreReads, 'actor'> | null;
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

export const createTaskEdits = (ports: TaskEditPorts): TaskEdits => {
  const { tracker, store, find, viewOf, record, now } = ports;

  const note = ({ task_id, attempt }: TaskView, message: string, facts: object): Answer<void> =>
    record(entry(task_id, attempt, 'log', now(), { level: 'info', message, ...facts }));

  /** Queued for a slot, at work, or between two attempts. */
  const requireAtRest = async (id: TaskId, { status, phase }: TaskView): Promise<void> => {
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
      await note(view, 'deleted', { deleted: true });
      return view;
    },
  };
};
