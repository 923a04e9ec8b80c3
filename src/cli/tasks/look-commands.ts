import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Client } from '../client/client.ts';
import { findTask } from '../client/command-setup.ts';
import type { sortKeys } from '../declarations/common-flags.ts';
import { closest } from '../output/closest.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { renderList } from '../output/render/render-list.ts';
import { renderTask } from '../output/render/render-task.ts';
import { statusAdvice } from '../words/other-tools.ts';
import { UsageError } from '../words/usage-error.ts';
import { type FetchedTasks, fetchTasks, type TaskFilter } from './fetch-tasks.ts';

export type SortKey = (typeof sortKeys)[number];

const keys: Readonly<Record<SortKey, (task: TaskView) => string | number>> = {
  created: ({ created_at }) => created_at,
  updated: ({ updated_at }) => updated_at,
  /** The most urgent comes last, as the newest and the dearest do. */
  priority: ({ priority }) => -priority,
  cost: ({ usage }) => usage.cost_usd ?? 0,
  status: ({ status }) => status,
  title: ({ title }) => title,
};

/** Rising, and by the time of creation where the key is equal. */
export const compareBy =
  (sort: SortKey) =>
  (one: TaskView, other: TaskView): number => {
    const [a, b] = [keys[sort](one), keys[sort](other)];
    if (a !== b) return a < b ? -1 : 1;
    return one.created_at < other.created_at ? -1 : 1;
  };

/**
 * `list` and `show` are the most frequent commands, so this file and its imports load almost
 * nothing (ADR 0005).
 */

/** Without a server, a started task is not running. */
const warnStranded = (client: Client, tasks: readonly TaskView[], io: Io): void => {
  const stranded = tasks.filter(
    ({ status, phase, held_by: holder }) =>
      (status === 'started' && holder === undefined) ||
      phase === 'waiting_for_slot' ||
      phase === 'backing_off',
  );
  if (client.live || stranded.length === 0) return;
  const [only] = stranded.length === 1 ? stranded : [];
  const who = only === undefined ? `${stranded.length} tasks make` : `${only.task_id} makes`;
  io.err(`note: no server runs, so ${who} no progress; start one with: agent server start`);
};

/** Their rows say by whom. */
const warnHeld = (tasks: readonly TaskView[], io: Io): void => {
  const [first, ...more] = tasks.filter(({ held_by: holder }) => holder !== undefined);
  if (first === undefined) return;
  const { task_id: id } = first;
  const others = more.length === 0 ? 'is' : `and ${more.length} more are`;
  io.err(`note: ${id} ${others} held by others in the tracker; to release one: agent reopen ${id}`);
};

const warnCycles = async (tasks: readonly TaskView[], io: Io): Promise<void> => {
  const linked = tasks
    .filter(({ unmet_dependencies: unmet }) => unmet.length > 0)
    .map(({ task_id: id, unmet_dependencies: unmet }) => ({ id, unmet }));
  if (linked.length === 0) return;
  const { cyclesAmong } = await import('../../actors/engine/queries/task-graph.ts');
  for (const text of cyclesAmong(linked)) io.err(text);
};

const ourStatuses: readonly string[] = [
  'queued',
  'started',
  'complete',
  'failed',
  'cancelled',
  'active',
];
/** On a terminal. */
const shownByDefault = 50;

export interface ListArgs extends TaskFilter {
  readonly json: boolean;
  readonly limit?: number;
  readonly all?: boolean;
  readonly sort?: SortKey;
}

/** Null: all of them. @throws UsageError */
export const limitOf = (
  { limit, all, json }: Pick<ListArgs, 'limit' | 'all' | 'json'>,
  { width }: Io,
): number | null => {
  if (limit !== undefined && !(Number.isSafeInteger(limit) && limit > 0))
    throw new UsageError(`--limit needs a whole number from 1; ${limit} is none`);
  if (limit !== undefined && all === true)
    throw new UsageError('--limit and --all contradict each other: leave one out');
  if (limit !== undefined) return limit;
  return all === true || json || width === null ? null : shownByDefault;
};

const fetchSorted = async (
  client: Client,
  io: Io,
  filter: TaskFilter,
  sort: SortKey,
  limit: number | null,
): Promise<FetchedTasks> => {
  if (sort === 'created') return fetchTasks(client, io, filter, limit);
  const { tasks } = await fetchTasks(client, io, filter, null);
  const sorted = tasks.toSorted(compareBy(sort));
  const shown = limit === null ? sorted : sorted.slice(-limit);
  return { tasks: shown, more: tasks.length - shown.length };
};

const noteMore = (more: number | null, sort: SortKey, io: Io): void => {
  if (more === 0) return;
  const which = sort === 'created' ? 'older' : 'more';
  io.err(`${more === null ? `there are ${which}` : `${more} ${which}`}; see: agent list --all`);
};

const nothingText = ({ status, role, label }: TaskFilter): string =>
  status === undefined && role === undefined && label === undefined
    ? 'no tasks; create one with: agent create "<description>"'
    : `no ${[status, 'tasks'].filter(Boolean).join(' ')}${role === undefined ? '' : ` of the ${role}`}${
        label === undefined ? '' : ` with the label ${label}`
      }`;

const statusesText = (given: string): string => {
  const meant = statusAdvice(given) ?? closest(given, ourStatuses);
  return meant === null
    ? `the statuses are ${ourStatuses.join(', ')}`
    : `did you mean ${meant}? (${ourStatuses.join(', ')})`;
};

/** @throws UsageError for a status that no task can have */
export const requireStatus = (status: string | undefined): void => {
  if (status !== undefined && !ourStatuses.includes(status))
    throw new UsageError(`no task has the status ${status}; ${statusesText(status)}`);
};

/** Prints the newest (or the highest by `sort`) last, next to the prompt. */
export const printTasks = async (client: Client, io: Io, args: ListArgs): Promise<number> => {
  const { json, status, role, label, sort = 'created' } = args;
  const limit = limitOf(args, io);
  const filter: TaskFilter = { status, role, label };
  const { tasks, more } = await fetchSorted(client, io, filter, sort, limit);
  if (tasks.length === 0) requireStatus(status);
  warnStranded(client, tasks, io);
  if (json) {
    io.json(tasks);
    return exitCodes.done;
  }
  io.out(renderList(tasks, Date.now(), io.width));
  if (tasks.length === 0) io.err(nothingText(filter));
  warnHeld(tasks, io);
  await warnCycles(tasks, io);
  if (args.limit === undefined) noteMore(more, sort, io);
  return exitCodes.done;
};

export const showTask = async (
  client: Client,
  io: Io,
  json: boolean,
  taskId: string,
): Promise<number> => {
  const task = await findTask(client, taskId);
  warnStranded(client, [task], io);
  if (json) io.json(task);
  else io.out(renderTask(task, io.width));
  return exitCodes.done;
};
