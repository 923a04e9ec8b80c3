import type { TaskView } from '../../actors/journal/task-view.ts';
import { ageText } from './durations.ts';
import { costText } from './money.ts';
import { attemptText } from './next-steps.ts';
import { parkedText } from './parked-text.ts';
import { oneLine } from './safe-text.ts';
import { statusStyle } from './status-style.ts';
import type { Text } from './styled.ts';
import { type Cell, renderTable } from './table.ts';

/** The list has room for one short word beside the status; `show` has the whole phase. */
const shortPhases: Readonly<Record<string, string>> = {
  waiting_for_run: 'ready',
  waiting_for_dependencies: 'blocked',
  waiting_for_slot: 'waiting',
  waiting_for_tracker: 'waiting',
  backing_off: 'pausing',
  awaiting_input: 'asks you',
  awaiting_approval: 'asks you',
};
const longestTitle = 200;

const statusText = (task: TaskView, now: number): string => {
  const { status, phase, ready } = task;
  const parked = parkedText(task, now);
  if (parked !== undefined) return parked;
  if (phase === status || (phase === 'waiting_for_run' && !ready)) return oneLine(status, 30);
  return `${oneLine(status, 30)} (${shortPhases[phase] ?? oneLine(phase, 30).replaceAll('_', ' ')})`;
};

const statusCell = (task: TaskView, now: number): Cell => {
  const text = statusText(task, now);
  const style = statusStyle(task);
  return style === undefined ? { text } : { text, style };
};

const rowOf =
  (now: number, width: number | null) =>
  (task: TaskView): readonly Cell[] => [
    { text: task.task_id },
    statusCell(task, now),
    { text: task.role ?? '-' },
    { text: task.attempt === 0 ? '-' : attemptText(task) },
    { text: ageText(now - Date.parse(task.created_at)) },
    { text: costText(task.usage.cost_usd) ?? '-' },
    { text: oneLine(task.title, width === null ? Number.POSITIVE_INFINITY : longestTitle) },
  ];

/** `now`: epoch ms; `width`: columns of the terminal, null where lines may be long. */
export const renderList = (tasks: readonly TaskView[], now: number, width: number | null): Text =>
  renderTable(
    ['ID', 'STATUS', 'ROLE', 'ATTEMPT', 'AGE', 'COST', 'TITLE'],
    tasks.map(rowOf(now, width)),
    width,
  );
