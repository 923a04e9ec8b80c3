import type { TaskView } from '../../actors/journal/task-view.ts';
import { plural } from '../../machines/plural.ts';
import { durationText } from '../output/durations.ts';
import { clockText } from '../output/local-time.ts';
import { costText } from '../output/money.ts';
import { attemptText } from '../output/next-steps.ts';
import { oneLine } from '../output/safe-text.ts';
import { type Style, styled, type Text } from '../output/styled.ts';
import { type Cell, renderTable } from '../output/table.ts';
import { cutToWidth } from '../output/width.ts';
import type { GraphOutcome } from './outcome.ts';
import { isOver, type Progress, type TaskProgress } from './progress.ts';

const progressPhases: Readonly<Record<string, string>> = {
  waiting_for_slot: 'in the queue',
  waiting_for_tracker: 'tracker is away',
  backing_off: 'pausing',
  acting: 'working',
  awaiting_input: 'asks you',
  awaiting_approval: 'asks you',
};
const styles: Readonly<Record<string, Style>> = {
  started: 'cyan',
  complete: 'green',
  failed: 'red',
  cancelled: 'yellow',
};
const longestState = 17;
const longestRole = 9;

const stateOf = (task: TaskProgress, blocker: string | null, now: number): Cell => {
  const { status, phase, unmet_dependencies: unmet, awaiting, parked_until: parked } = task.view;
  if (blocker !== null) return { text: 'stuck', style: 'yellow' };
  if (isOver(task)) {
    const style = styles[status];
    const text = status === 'queued' ? 'refused' : oneLine(status, longestState);
    return style === undefined ? { text, style: 'red' } : { text, style };
  }
  if (parked !== undefined) return { text: `parked ${clockText(parked, now)}`, style: 'yellow' };
  if (phase === 'waiting_for_dependencies')
    return {
      text: unmet.length === 1 ? `after ${unmet[0]}` : `after ${unmet.length} tasks`,
      style: 'dim',
    };
  const text = progressPhases[phase] ?? oneLine(phase, longestState).replaceAll('_', ' ');
  if (awaiting !== undefined) return { text, style: 'yellow' };
  return status === 'started' ? { text, style: 'cyan' } : { text };
};

const elapsedOf = ({ started_at, completed_at, attempt }: TaskView, now: number): string => {
  if (started_at === undefined || attempt === 0) return '-';
  const end = completed_at === undefined ? now : Date.parse(completed_at);
  const seconds = Math.max(0, Math.floor((end - Date.parse(started_at)) / 1_000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
};

const lastWordsOf = ({ view, words }: TaskProgress, blocker: string | null): string => {
  if (blocker !== null) return `waits for ${blocker}`;
  if (view.status === 'complete') return view.result ?? view.title;
  if (view.parked_reason !== undefined) return view.parked_reason;
  if (view.error !== undefined && view.status !== 'started') return view.error.message;
  return words === '' ? view.title : words;
};

const progressRow = (task: TaskProgress, blocker: string | null, now: number): readonly Cell[] => {
  const { view } = task;
  const state = stateOf(task, blocker, now);
  return [
    { text: view.task_id },
    { ...state, text: cutToWidth(state.text, longestState) },
    { text: cutToWidth(view.role ?? '-', longestRole) },
    { text: view.attempt === 0 ? '-' : attemptText(view).replace(' of ', '/') },
    { text: task.turn ?? '-' },
    { text: elapsedOf(view, now) },
    { text: costText(view.usage.cost_usd) ?? '-' },
    { text: oneLine(lastWordsOf(task, blocker), 300) },
  ];
};

const progressHeader = [
  'ID',
  'STATE',
  'ROLE',
  'TRY',
  'TURN',
  'TIME',
  'COST',
  'LAST WORDS',
] as const;
const costColumn = progressHeader.indexOf('COST');

/** The cost has a column only where a price is known. */
export const renderProgressRows = (
  tasks: readonly TaskProgress[],
  progress: Progress,
  now: number,
  width: number | null,
): Text => {
  const rows = tasks.map((task) => progressRow(task, progress.blocker(task.view.task_id), now));
  const isPriced = rows.some((row) => row[costColumn]?.text !== '-');
  const shown = <Each>(all: readonly Each[]): readonly Each[] =>
    all.filter((_, at) => isPriced || at !== costColumn);
  return renderTable(shown(progressHeader), rows.map(shown), width);
};

/** `3 of 7 complete, 1 failed, 2 running`. */
export const renderCounts = (tasks: readonly TaskProgress[]): string => {
  const count = (isSo: (task: TaskProgress) => boolean): number => tasks.filter(isSo).length;
  const failed = count(({ view }) => view.status === 'failed');
  const parked = count(({ view }) => view.parked_until !== undefined);
  const running = count((task) => task.view.status === 'started' && !isOver(task));
  return [
    `${count(({ view }) => view.status === 'complete')} of ${tasks.length} complete`,
    ...(failed === 0 ? [] : [`${failed} failed`]),
    `${running} running`,
    ...(parked === 0 ? [] : [`${parked} parked`]),
  ].join(', ');
};

const amounts = ({ seconds, input_tokens, output_tokens, cost_usd }: GraphOutcome): string => {
  const cost = costText(cost_usd);
  return [
    durationText(seconds * 1_000),
    `${(input_tokens + output_tokens).toLocaleString('en')} tokens`,
    ...(cost === undefined ? [] : [cost]),
  ].join(', ');
};

/** What came of the run, and what to do about what did not complete. */
export const renderOutcome = (outcome: GraphOutcome): Text => {
  const { complete, failed, cancelled, waiting, skipped } = outcome;
  const numbers = Object.entries({ failed, cancelled, waiting, skipped }).flatMap(
    ([word, { length }]) => (length === 0 ? [] : [`${length} ${word}`]),
  );
  const lines: Text[] = [
    ...failed.map(({ task_id, reason }) => [
      styled('red', `failed     ${task_id}`),
      `  ${oneLine(reason, 300)}; again with: agent retry ${task_id}`,
    ]),
    ...cancelled.map((task_id) => [styled('yellow', `cancelled  ${task_id}`)]),
    ...waiting.map(({ task_id, waits_for }) => [
      styled('yellow', `waiting    ${task_id}`),
      `  for ${waits_for}; it starts by itself when that is complete (agent explain ${task_id})`,
    ]),
    ...skipped.map(({ task_id, reason }) => [
      styled('yellow', `skipped    ${task_id}`),
      `  ${oneLine(reason, 300)}`,
    ]),
    `${[`${plural(complete.length, 'task')} complete`, ...numbers].join(', ')} in ${amounts(outcome)}`,
  ];
  return lines.flatMap((line, at) => [
    ...(at === 0 ? [] : ['\n']),
    ...(typeof line === 'string' ? [line] : line),
  ]);
};
