import type { TaskView } from '../../actors/journal/task-view.ts';
import { workedMs } from '../../http/worked-time.ts';
import { textIn } from '../../machines/json.ts';
import { plural, someOf } from '../../machines/plural.ts';
import type { Frame } from '../client/client.ts';
import type { Io } from '../output/io.ts';
import { costText } from '../output/money.ts';
import { attemptText } from '../output/next-steps.ts';
import { renderFrame } from '../output/render/render-frame.ts';
import { type Cell, renderTable } from '../output/render/table.ts';
import { oneLine } from '../output/safe-text.ts';
import { joined, type Style, styled, type Text, terminalText } from '../output/styled.ts';
import { durationText } from '../output/times.ts';
import { cutToWidth, linesOfText, wrapAfter, wrapLines } from '../output/wrap.ts';
import { goOnWords, parkedWords, phaseWord } from '../words/state-words.ts';
import { type GraphOutcome, skippedTexts } from './outcome.ts';
import {
  isOver,
  isOverBudget,
  lastSentence,
  type Progress,
  type TaskProgress,
} from './progress.ts';

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
  return `waits for ${someOf(unmet, blockersAtMost)}`;
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
const renderCounts = (tasks: readonly TaskProgress[]): string => {
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
    failed,
    cancelled,
    parked: over_budget,
    waiting,
    skipped,
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

export interface Display {
  see(frame: Frame): void;
  ask(question: string | null): void;
  /** Draws nothing while a person types. */
  typing(isTyping: boolean): void;
  /** Clears the live lines and prints the state of each task, once. */
  stop(): void;
}

export interface DisplayPorts {
  readonly io: Io;
  readonly json: boolean;
  /** Enter opens the question of a task. */
  readonly answersHere?: boolean;
  readonly progress: Progress;
  /** In the order of the run. */
  readonly followed: () => readonly string[];
}

const redrawMs = 200;
const clockMs = 1_000;
/** The header, the counts in two lines, the cursor. */
const linesBesideRows = 4;

export const firstAsking = (tasks: readonly TaskProgress[]): TaskProgress | null =>
  tasks.find((task) => task.view.awaiting !== undefined && !isOver(task)) ?? null;

/** Says how to answer the first task that asks: the table shows only the beginning of its question. */
const askingLine = (tasks: readonly TaskProgress[], answersHere: boolean): readonly string[] => {
  const id = firstAsking(tasks)?.view.task_id;
  if (id === undefined) return [];
  const elsewhere = `agent respond ${id}`;
  return [
    answersHere
      ? `press Enter to answer ${id}; in another terminal: ${elsewhere}`
      : `to answer, in another terminal: ${elsewhere}`,
  ];
};

/** The table shows only the beginning of a reason. */
const pauseLine = (tasks: readonly TaskProgress[], width: number): readonly string[] => {
  const pausing = tasks.find(
    ({ view, words }) => view.phase === 'backing_off' && view.status === 'started' && words !== '',
  );
  if (pausing === undefined) return [];
  return [cutToWidth(`${pausing.view.task_id} pauses: ${oneLine(pausing.words, 400)}`, width)];
};

/** One retry that is answered ends the limit for all tasks of its backend. */
const retryLine = (tasks: readonly TaskProgress[]): readonly string[] => {
  const parked = tasks.find(({ view }) => view.parked_until !== undefined && !isOverBudget(view));
  return parked === undefined
    ? []
    : [`to try now, in another terminal: agent retry ${parked.view.task_id}`];
};

export const tasksOf = ({
  progress,
  followed,
}: Pick<DisplayPorts, 'progress' | 'followed'>): readonly TaskProgress[] =>
  followed().flatMap((taskId) => progress.get(taskId) ?? []);

/** Puts running tasks first when not all fit. */
const fitting = (tasks: readonly TaskProgress[], rows: number): readonly TaskProgress[] => {
  if (tasks.length <= rows) return tasks;
  const rank = (task: TaskProgress): number => {
    if (task.view.status === 'started') return 0;
    if (task.view.status === 'failed') return 1;
    return isOver(task) ? 3 : 2;
  };
  return tasks.toSorted((one, other) => rank(one) - rank(other)).slice(0, Math.max(1, rows));
};

/** A table that is kept up to date, redrawn at most five times a second. */
const createLiveTable = (ports: DisplayPorts): Display => {
  const { io, progress, answersHere = false } = ports;
  let isTyping = false;
  let question: string | null = null;
  let later: NodeJS.Timeout | null = null;
  let isStopped = false;
  let isDrawn = false;
  const draw = (): void => {
    later = null;
    const size = io.terminal();
    const tasks = tasksOf(ports);
    if (size === null || isStopped || isTyping || (tasks.length === 0 && question === null)) return;
    isDrawn = true;
    const fit = (line: string): readonly string[] => wrapLines(line, size.columns).split('\n');
    const hints = [
      ...askingLine(tasks, answersHere),
      ...pauseLine(tasks, size.columns),
      ...retryLine(tasks),
      ...(question === null ? [] : [question]),
    ].flatMap(fit);
    const shown = fitting(tasks, size.rows - hints.length - linesBesideRows);
    const rest = tasks.length - shown.length;
    const counts = `${renderCounts(tasks)}${rest === 0 ? '' : `; ${rest} more are not shown`}`;
    const table = renderProgressRows(shown, progress, Date.now(), size.columns);
    io.liveLines([...linesOfText(table), ...fit(counts), ...hints]);
  };
  const drawSoon = (): void => {
    later ??= setTimeout(draw, isDrawn ? redrawMs : 0);
  };
  const clock = setInterval(drawSoon, clockMs);
  process.stderr.on('resize', drawSoon);
  return {
    see: drawSoon,
    ask: (text) => {
      question = text;
      draw();
    },
    typing: (typing) => {
      isTyping = typing;
      if (!typing) return draw();
      io.typedLine();
      io.liveLines([]);
    },
    stop: () => {
      if (isStopped) return;
      isStopped = true;
      clearInterval(clock);
      if (later !== null) clearTimeout(later);
      process.stderr.off('resize', drawSoon);
      io.liveLines([]);
      const tasks = tasksOf(ports);
      if (tasks.length === 0) return;
      io.out(renderProgressRows(tasks, progress, Date.now(), io.terminal()?.columns ?? io.width));
    },
  };
};

const shownTypes: ReadonlySet<string> = new Set([
  'status_update',
  'input_required',
  'approval_required',
  'completed',
  'failed',
  'cancelled',
]);

/** One line for each change of a task. */
const createLines = ({ io }: DisplayPorts): Display => {
  const last = new Map<string, string>();
  return {
    see: (frame) => {
      const line = shownTypes.has(frame.type) ? renderFrame(frame) : null;
      if (line === null) return;
      const text = terminalText(line, false);
      if (last.get(frame.task_id) !== text) io.out(line);
      last.set(frame.task_id, text);
    },
    ask: () => {},
    typing: () => {},
    stop: () => {},
  };
};

const createJsonLines = ({ io }: DisplayPorts): Display => ({
  see: (frame) => io.json(frame),
  ask: () => {},
  typing: () => {},
  stop: () => {},
});

const notesAtMost = 20;

/**
 * Prints each warning that comes before the first turn of a task once for the whole run (a worktree
 * lacks a file): a person can stop the run before it costs anything.
 */
const withNotes = (display: Display, { io, progress }: DisplayPorts): Display => {
  const notes = new Set<string>();
  return {
    ...display,
    see: (frame) => {
      const task = progress.get(frame.task_id);
      const isEarly = frame.type === 'log' && task?.turn === null && task.view.status === 'started';
      const note = isEarly && frame.data['level'] === 'warn' ? textIn(frame.data, 'message') : null;
      if (note !== null && notes.size < notesAtMost && !notes.has(note)) {
        notes.add(note);
        io.err(`note: ${note}`);
      }
      display.see(frame);
    },
  };
};

export const createDisplay = (ports: DisplayPorts): Display => {
  if (ports.json) return createJsonLines(ports);
  const display = ports.io.terminal() === null ? createLines(ports) : createLiveTable(ports);
  return withNotes(display, ports);
};
