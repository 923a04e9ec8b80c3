import type { TaskView } from '../../actors/journal/task-view.ts';
import { workedMs } from '../../http/worked-time.ts';
import { plural } from '../../machines/plural.ts';
import { durationText } from '../output/durations.ts';
import { costText } from '../output/money.ts';
import { attemptText } from '../output/next-steps.ts';
import { oneLine } from '../output/safe-text.ts';
import { joined, type Style, styled, type Text } from '../output/styled.ts';
import { type Cell, renderTable } from '../output/table.ts';
import { cutToWidth } from '../output/width.ts';
import { wrapAfter } from '../output/wrap.ts';
import { goOnWords, parkedWords, phaseWord } from '../words/state-words.ts';
import { type GraphOutcome, skippedTexts } from './outcome.ts';
import { isOver, lastSentence, type Progress, type TaskProgress } from './progress.ts';

const styles: Readonly<Record<string, Style>> = {
  started: 'cyan',
  complete: 'green',
  failed: 'red',
  cancelled: 'yellow',
};
const longestState = 22;
const longestTitle = 24;
const longestRole = 9;
/** The title says which task it is; fewer columns of its last words say little. */
const lastWordsAtLeast = 24;

const stateOf = (task: TaskProgress, blocker: string | null, now: number): Cell => {
  const { view } = task;
  const { status, phase, awaiting, parked_until: parked } = view;
  if (isOver(task)) {
    const text = status === 'queued' ? 'refused' : oneLine(status, longestState);
    return { text, style: styles[status] ?? 'red' };
  }
  if (parked !== undefined)
    return { text: parkedWords(parked, now, view.parked_reason), style: 'yellow' };
  const text = phaseWord(phase);
  if (awaiting !== undefined || blocker !== null) return { text, style: 'yellow' };
  if (phase === 'waiting_for_dependencies') return { text, style: 'dim' };
  return status === 'started' ? { text, style: 'cyan' } : { text };
};

/** A task that waits again shows no time: that of its last attempt says nothing about this run. */
const elapsedOf = (view: TaskView, now: number): string => {
  const { status, attempt } = view;
  const worked = attempt === 0 || status === 'queued' ? null : workedMs(view, now);
  if (worked === null) return '-';
  const seconds = Math.floor(worked / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
};

const blockersAtMost = 3;

/** `waits for bd-a1, bd-b2`; a blocker that does not go on by itself is named alone. */
const waitsText = (unmet: readonly string[], blocker: string | null): string => {
  if (blocker !== null) return `waits for ${blocker}, which needs you`;
  const rest = unmet.length - blockersAtMost;
  const named = unmet.slice(0, blockersAtMost).join(', ');
  return `waits for ${named}${rest > 0 ? ` and ${rest} more` : ''}`;
};

/** The words of the agent when it finished, else its summary: earlier words are not its last. */
const finalWordsOf = ({ view, said, isSilentTurn }: TaskProgress): string =>
  (isSilentTurn ? '' : lastSentence(said)) || (view.result ?? '');

const lastWordsOf = (task: TaskProgress, blocker: string | null): string => {
  const { view, words } = task;
  if (view.status === 'complete') return finalWordsOf(task);
  if (view.parked_reason !== undefined) return view.parked_reason.replace('provider limit: ', '');
  if (blocker !== null || view.phase === 'waiting_for_dependencies')
    return waitsText(view.unmet_dependencies, blocker);
  if (view.error !== undefined && view.status !== 'started') return view.error.message;
  const { awaiting } = view;
  if (words === '' && awaiting?.question !== undefined) return `asks: ${awaiting.question}`;
  return words;
};

const progressRow = (task: TaskProgress, blocker: string | null, now: number): readonly Cell[] => {
  const { view } = task;
  const state = stateOf(task, blocker, now);
  return [
    { text: view.task_id },
    { ...state, text: cutToWidth(state.text, longestState) },
    { text: oneLine(view.title, longestTitle) },
    { text: elapsedOf(view, now) },
    { text: costText(view.usage.cost_usd) ?? '-' },
    { text: cutToWidth(view.role ?? '-', longestRole) },
    { text: view.attempt === 0 ? '-' : attemptText(view).replace(' of ', '/') },
    { text: task.turn ?? '-' },
    { text: oneLine(lastWordsOf(task, blocker), 300) },
  ];
};

const progressHeader = [
  'ID',
  'STATE',
  'TITLE',
  'TIME',
  'COST',
  'ROLE',
  'TRY',
  'TURN',
  'LAST WORDS',
] as const;
const progressCostColumn = progressHeader.indexOf('COST');

/** The cost has a column only where a price is known. */
export const renderProgressRows = (
  tasks: readonly TaskProgress[],
  progress: Progress,
  now: number,
  width: number | null,
): Text => {
  const rows = tasks.map((task) => progressRow(task, progress.blocker(task.view.task_id), now));
  const isPriced = rows.some((row) => row[progressCostColumn]?.text !== '-');
  const shown = <Each>(all: readonly Each[]): readonly Each[] =>
    all.filter((_, at) => isPriced || at !== progressCostColumn);
  return renderTable(shown(progressHeader), rows.map(shown), width, lastWordsAtLeast);
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

/** The head in a colour, then the text; the next lines begin below the text. */
const outcomeRow = (style: Style, head: string, text: string, width: number | null): Text => {
  const row = wrapAfter(text === '' ? head : `${head}  `, text, width);
  return [styled(style, head), row.slice(head.length)];
};

/** The end of a run, with what to do about tasks that did not complete. `width`: as in `renderTable`. */
export const renderOutcome = (outcome: GraphOutcome, width: number | null): Text => {
  const { complete, failed, cancelled, over_budget, waiting, skipped } = outcome;
  const numbers = Object.entries({
    ...{ failed, cancelled, parked: over_budget, waiting, skipped },
  }).flatMap(([word, { length }]) => (length === 0 ? [] : [`${length} ${word}`]));
  const row = (style: Style, head: string, text: string): Text =>
    outcomeRow(style, head, text, width);
  const lines: Text[] = [
    ...failed.map(({ task_id, reason }) =>
      row(
        'red',
        `failed     ${task_id}`,
        `${oneLine(reason, 300)}; why: agent show ${task_id}; again with: agent retry ${task_id}`,
      ),
    ),
    ...cancelled.map((task_id) => row('yellow', `cancelled  ${task_id}`, '')),
    ...over_budget.map(({ task_id, reason, until }) =>
      row(
        'yellow',
        `parked     ${task_id}`,
        `${oneLine(reason, 300)}${until === undefined ? '' : `, until ${until}`}; ${goOnWords(task_id, reason)}`,
      ),
    ),
    ...waiting.map(({ task_id, waits_for }) =>
      row(
        'yellow',
        `waiting    ${task_id}`,
        `for ${waits_for}; it starts by itself when that is complete (agent explain ${task_id})`,
      ),
    ),
    ...skippedTexts(skipped).map(({ who, why }) => row('yellow', `skipped    ${who}`, why)),
    `${[`${plural(complete.length, 'task')} complete`, ...numbers].join(', ')} in ${amounts(outcome)}`,
  ];
  return joined(lines, '\n');
};
