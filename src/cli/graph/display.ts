import { textIn } from '../../machines/json.ts';
import type { Frame } from '../client/client.ts';
import type { Io } from '../output/io.ts';
import { renderFrame } from '../output/render-frame.ts';
import { oneLine } from '../output/safe-text.ts';
import { terminalText } from '../output/styled.ts';
import { cutToWidth } from '../output/width.ts';
import { wrapLines } from '../output/wrap.ts';
import { linesOfText } from '../output/wrap-text.ts';
import { isOver, isOverBudget, type Progress, type TaskProgress } from './progress.ts';
import { renderCounts, renderProgressRows } from './render-progress.ts';

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
