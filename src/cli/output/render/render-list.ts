import type { TaskView } from '../../../actors/journal/task-view.ts';
import { pullRequestOf, stateWords } from '../../words/state-words.ts';
import { costText } from '../money.ts';
import { attemptText } from '../next-steps.ts';
import { oneLine } from '../safe-text.ts';
import type { Style, Text } from '../styled.ts';
import { ageText } from '../times.ts';
import { type Cell, renderTable } from './table.ts';

/** `project`: its name at the hub, in a list of all projects. */
export type ListedTask = TaskView & { readonly project?: string };

const longestTitle = 200;

const statusCell = (task: TaskView, now: number): Cell => {
  const text = stateWords(task, now);
  const style = statusStyle(task);
  return style === undefined ? { text } : { text, style };
};

const taskRow =
  (now: number, width: number | null) =>
  (task: ListedTask): readonly Cell[] => [
    ...(task.project === undefined ? [] : [{ text: task.project }]),
    { text: task.task_id },
    statusCell(task, now),
    { text: task.role ?? '-' },
    { text: task.attempt === 0 ? '-' : attemptText(task).replace(' of ', '/') },
    { text: ageText(now - Date.parse(task.created_at)) },
    { text: costText(task.usage.cost_usd) ?? '-' },
    { text: oneLine(task.title, width === null ? Number.POSITIVE_INFINITY : longestTitle) },
  ];

const listHeader = ['ID', 'STATUS', 'ROLE', 'TRY', 'AGE', 'COST', 'TITLE'] as const;

/**
 * `now`: epoch ms; `width`: columns of the terminal, null where lines may be long. A terminal has no
 * column for costs when none is known.
 */
export const renderList = (
  tasks: readonly ListedTask[],
  now: number,
  width: number | null,
): Text => {
  const isPriced = width === null || tasks.some(({ usage }) => usage.cost_usd !== undefined);
  const isOfAll = tasks.some(({ project }) => project !== undefined);
  const header = isOfAll ? ['PROJECT', ...listHeader] : listHeader;
  const costColumn = header.indexOf('COST');
  const shown = <Each>(all: readonly Each[]): readonly Each[] =>
    all.filter((_, at) => isPriced || at !== costColumn);
  return renderTable(shown(header), tasks.map(taskRow(now, width)).map(shown), width);
};

const stylesOfStatus: Readonly<Record<string, Style>> = {
  started: 'cyan',
  complete: 'green',
  failed: 'red',
  cancelled: 'yellow',
};

/** The colour of a task's status; one that asks or is parked, or whose pull request waits for a person, has that of a warning. */
export const statusStyle = ({
  status,
  awaiting,
  parked_until: parked,
  work,
  pull_request,
}: TaskView): Style | undefined =>
  awaiting === undefined &&
  parked === undefined &&
  pullRequestOf({ status, work, pull_request })?.waits_for !== 'person'
    ? stylesOfStatus[status]
    : 'yellow';
