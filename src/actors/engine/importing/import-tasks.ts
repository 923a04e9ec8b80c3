import { isServiceError, ServiceError } from '../../../machines/errors.ts';
import { parseTaskId, type TaskId } from '../../../machines/task.ts';
import { sourceOf, type TrackedTask } from '../../../machines/tracked-task.ts';

import type { TaskView } from '../../journal/task-view.ts';
import { requireValidTask } from '../../ledger/issue.ts';
import type { StatusWrites, TaskFields, TrackerReads, TrackerWrites } from '../../tracker/port.ts';
import { closedMark, markIn } from './issue-item.ts';
import { type ImportItem, type OrderedItem, orderItems } from './order-items.ts';

/** `deleted`: a person deleted its task. */
export type ImportAction = 'make' | 'change' | 'same' | 'deleted';

export interface ImportedItem {
  readonly title: string;
  /** For people: `#12`, or its title. */
  readonly name: string;
  /** The step that is taken, or was. */
  readonly action: ImportAction;
  readonly task_id?: TaskId;
  /** Names of items and ids of tasks. */
  readonly depends_on: readonly string[];
  /** Cycles that its dependencies would close, which are left out: `#3 -> #5 -> #3` */
  readonly cycles: readonly string[];
  /** Dependencies that are no task here. */
  readonly unknown: readonly string[];
}

export interface Imported {
  readonly items: readonly ImportedItem[];
}

/** `dryRun`: only says what would be done. `again`: also makes what a person deleted here. */
export interface HowToImport {
  readonly dryRun: boolean;
  readonly again: boolean;
}

export interface ImportPorts {
  readonly tracker: Pick<TrackerReads, 'list'> &
    Pick<TrackerWrites, 'create' | 'addDependency' | 'removeDependency'> &
    Pick<StatusWrites, 'reopen'>;
  readonly viewOf: (tracked: TrackedTask) => Promise<TaskView>;
  readonly edit: (taskId: string, fields: TaskFields) => Promise<TaskView>;
  /** For the agent of an attempt, once for each `requestId`. */
  readonly tell: (taskId: string, text: string, requestId: string) => Promise<void>;
}

/** @throws invalid_params */
const requireItems = (items: readonly ImportItem[]): void => {
  const fields: { path: string; problem: string }[] = [];
  const refs = new Set<string>();
  for (const [index, { ref, title, description, priority, labels }] of items.entries()) {
    if (refs.has(ref)) fields.push({ path: `items.${index}`, problem: 'is there twice' });
    refs.add(ref);
    try {
      requireValidTask({ title, description, priority, labels, dependencies: [] });
    } catch (error) {
      if (!isServiceError(error) || error.code !== 'invalid_params') throw error;
      const { facts } = error as ServiceError<'invalid_params'>;
      fields.push(
        ...facts.fields.map(({ path, problem }) => ({ path: `items.${index}.${path}`, problem })),
      );
    }
  }
  if (fields.length > 0) throw new ServiceError('invalid_params', { fields });
};

const isEdited = ({ version }: ImportItem, { description }: TrackedTask): boolean => {
  const mark = markIn(description);
  return version !== null && mark !== null && mark !== `version ${version}`;
};

const wasClosedThere = ({ description }: TrackedTask): boolean =>
  markIn(description) === closedMark;

/** A message has more room than an issue should need. */
const tellAtMost = 16_000;

const atRestAfterWork = new Set(['complete', 'cancelled']);

/** The step for one item. */
const createItemWork = ({ tracker, edit, tell }: ImportPorts) => {
  const isDeleted = (error: unknown): boolean =>
    isServiceError(error) && error.code === 'task_not_found';

  const make = async (
    { ref, name: _, version: __, dependsOn: ___, ...fields }: ImportItem,
    dependencies: readonly TaskId[],
    again: boolean,
  ): Promise<TrackedTask | null> => {
    const task = { ...fields, dependencies, externalRef: ref };
    try {
      return await tracker.create(task, `import:${ref}`);
    } catch (error) {
      if (!isDeleted(error)) throw error;
      return again ? tracker.create(task) : null;
    }
  };

  /** The task follows its source: before the first attempt it changes, later its agent is told, too. */
  const change = async (item: ImportItem, before: TrackedTask, view: TaskView): Promise<void> => {
    const isBack = wasClosedThere(before);
    if (isBack) await tracker.reopen(before.id);
    const { title, description, labels } = item;
    if (view.attempt > 0 && !isBack) {
      const text = `The issue of this task was edited at ${item.ref}. It says now:\n\n${title}\n\n${description}`;
      await tell(before.id, text.slice(0, tellAtMost), `import:${item.ref}:${item.version}`).catch(
        (error: unknown) => {
          // The next attempt reads it in the description.
          if (!isServiceError(error) || error.code !== 'event_not_allowed') throw error;
        },
      );
    }
    const role = before.labels.filter((label) => label.startsWith('role:'));
    await edit(before.id, { title, description, labels: [...new Set([...labels, ...role])] });
  };

  /** Only links between issues of its source are taken away: others are a person's. */
  const follow = async (
    before: TrackedTask,
    wanted: readonly TaskId[],
    ofSource: ReadonlySet<TaskId>,
    isChanged: boolean,
  ): Promise<void> => {
    for (const on of wanted)
      if (!before.dependencies.includes(on)) await tracker.addDependency(before.id, on);
    if (!isChanged) return;
    for (const on of before.dependencies)
      if (ofSource.has(on) && !wanted.includes(on)) await tracker.removeDependency(before.id, on);
  };

  return { make, change, follow };
};

/** The tasks as they are before an import. */
const readTasks = (all: readonly TrackedTask[]) => {
  const taskOf = new Map<string, TaskId>();
  for (const { id, externalRef } of all) if (externalRef !== undefined) taskOf.set(externalRef, id);
  return {
    taskOf,
    tasks: new Map<string, TrackedTask>(all.map((task) => [task.id, task])),
    edges: new Map<string, readonly string[]>(all.map((each) => [each.id, each.dependencies])),
    ofSource: new Set(all.flatMap((each) => (sourceOf(each.externalRef) ? [each.id] : []))),
  };
};

/** Makes tasks of items, and brings those that are there up to date. */
export const createImport = (ports: ImportPorts) => {
  const { make, change, follow } = createItemWork(ports);

  const bringUpToDate = async (
    item: ImportItem,
    before: TrackedTask,
    wanted: readonly TaskId[],
    { ofSource, dryRun }: { readonly ofSource: ReadonlySet<TaskId>; readonly dryRun: boolean },
  ): Promise<ImportAction> => {
    const edited = isEdited(item, before);
    const isLinked = wanted.every((on) => before.dependencies.includes(on));
    if (!edited && (isLinked || before.status === 'closed')) return 'same';
    const view = await ports.viewOf(before);
    const isOver = atRestAfterWork.has(view.status) && !wasClosedThere(before);
    const mayLink = view.attempt === 0;
    if (isOver || (!edited && !mayLink)) return 'same';
    if (dryRun) return 'change';
    if (mayLink) await follow(before, wanted, ofSource, edited);
    if (edited) await change(item, before, view);
    return 'change';
  };

  return async (
    items: readonly ImportItem[],
    { dryRun, again }: HowToImport,
  ): Promise<Imported> => {
    requireItems(items);
    const { taskOf, tasks, edges, ofSource } = readTasks(await ports.tracker.list());
    const names = new Map(items.map(({ ref, name }) => [taskOf.get(ref) ?? ref, name]));
    const nameOf = (node: string): string => names.get(node) ?? node;
    const idOf = (node: string): TaskId | null => taskOf.get(node) ?? parseTaskId(node);

    const carryOut = async ({ item, after }: OrderedItem): Promise<ImportAction> => {
      const before = tasks.get(taskOf.get(item.ref) ?? '');
      const wanted = after.flatMap((node) => idOf(node) ?? []);
      if (before !== undefined) return bringUpToDate(item, before, wanted, { ofSource, dryRun });
      if (dryRun) return 'make';
      const made = await make(item, wanted, again);
      if (made === null) return 'deleted';
      taskOf.set(item.ref, made.id);
      return 'make';
    };

    const done: ImportedItem[] = [];
    for (const each of orderItems(items, new Map(taskOf), edges)) {
      const { item, after, cycles, unknown } = each;
      const action = await carryOut(each);
      const id = taskOf.get(item.ref);
      done.push({
        title: item.title,
        name: item.name,
        action,
        unknown,
        ...(id === undefined ? {} : { task_id: id }),
        depends_on: after.map(nameOf),
        cycles: cycles.map((cycle) => cycle.map(nameOf).join(' -> ')),
      });
    }
    return { items: done };
  };
};
