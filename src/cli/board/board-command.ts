import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Client, Frame } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { createDisplay } from '../graph/display.ts';
import { createProgress, type Progress, type TaskProgress } from '../graph/progress.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { renderTask } from '../output/render/render-task.ts';
import { styled, type Text, terminalText } from '../output/styled.ts';
import { cutToWidth, wrap } from '../output/wrap.ts';
import { fetchTasks } from '../tasks/fetch-tasks.ts';
import { type Board, type BoardTask, renderBoard, sectionOf, sections } from './render-board.ts';

type KeyPress = 'up' | 'down' | 'first' | 'last' | 'show' | 'back' | 'help' | 'quit' | 'interrupt';

const keyNames: Readonly<Record<string, KeyPress>> = {
  j: 'down',
  k: 'up',
  g: 'first',
  G: 'last',
  q: 'quit',
  '?': 'help',
  '\r': 'show',
  '\n': 'show',
  '\u0003': 'interrupt',
  '\u001b': 'back',
  '\u001b[A': 'up',
  '\u001b[B': 'down',
  '\u001bOA': 'up',
  '\u001bOB': 'down',
  '\u001b[H': 'first',
  '\u001b[F': 'last',
};

const escapeCharacter = '\u001b';
/** One key, or an escape sequence as a whole. */
const oneKey = new RegExp(`${escapeCharacter}(?:\\[[0-9;]*[A-Za-z~]|O[A-Za-z])?|.`, 'gsu');

/** The keys in what a terminal sent; others are left out. */
export const keyPressesIn = (sent: string): readonly KeyPress[] =>
  (sent.match(oneKey) ?? []).flatMap((text) => keyNames[text] ?? []);

const keyHelp: readonly string[] = [
  'j, Down    next task',
  'k, Up      task before',
  'g, G       first task, last task',
  'Enter      show the task; again, or Esc, goes back',
  '?          this help',
  'q, Ctrl-C  quit; agents go on',
];

const redrawBoardMs = 200;
const boardClockMs = 1_000;

interface BoardScreen {
  /** Draws again soon, at most five times a second. */
  changed(): void;
  /** Resolves with the exit code when somebody quits. */
  readonly left: Promise<number>;
  /** Leaves the terminal as it was. The second time it does nothing. */
  stop(): void;
}

interface Sight {
  readonly page: 'board' | 'task' | 'help';
  readonly chosen: string | null;
  /** The first line that is shown of a page that is longer than the screen. */
  readonly top: number;
}

const movedTo = (board: Board, { chosen }: Sight, key: KeyPress): string | null => {
  const ids = board.tasks.map(({ task }) => task.view.task_id);
  const at = chosen === null ? -1 : ids.indexOf(chosen);
  const last = ids.length - 1;
  if (key === 'first') return ids[0] ?? null;
  if (key === 'last') return ids[last] ?? null;
  const next = key === 'down' ? Math.min(last, at + 1) : Math.max(0, at - 1);
  return ids[next] ?? null;
};

const moves: ReadonlySet<KeyPress> = new Set(['up', 'down', 'first', 'last']);

const afterKey = (board: Board, sight: Sight, key: KeyPress): Sight => {
  if (key === 'help') return { ...sight, page: sight.page === 'help' ? 'board' : 'help', top: 0 };
  if (sight.page !== 'board') {
    if (!moves.has(key)) return { ...sight, page: 'board', top: 0 };
    return { ...sight, top: Math.max(0, sight.top + (key === 'down' ? 1 : -1)) };
  }
  if (moves.has(key)) return { ...sight, chosen: movedTo(board, sight, key) };
  return key === 'show' && sight.chosen !== null ? { ...sight, page: 'task', top: 0 } : sight;
};

const pageLines = (board: Board, sight: Sight, columns: number): readonly string[] => {
  if (sight.page === 'help') return keyHelp;
  const found = sight.chosen === null ? null : board.find(sight.chosen);
  if (found === null) return ['The task is gone.'];
  const { view } = found.task;
  const full = found.work === undefined ? view : { ...view, work: found.work };
  return terminalText(renderTask(full), false)
    .split('\n')
    .flatMap((line) => wrap(line, columns));
};

const screenLines = (board: Board, sight: Sight, size: { columns: number; rows: number }) => {
  if (sight.page === 'board') return renderBoard(board, sight.chosen, Date.now(), size);
  const lines = pageLines(board, sight, size.columns);
  const room = Math.max(1, size.rows - 1);
  const top = Math.min(sight.top, Math.max(0, lines.length - room));
  const foot = styled('dim', cutToWidth('Esc back · j/k scroll · q quit', size.columns));
  return [...lines.slice(top, top + room).map((line) => cutToWidth(line, size.columns)), [foot]];
};

/** The chosen task stays chosen while it moves; when it is gone, the first one is. */
const onBoard = (board: Board, sight: Sight): Sight => {
  const isThere = board.tasks.some(({ task }) => task.view.task_id === sight.chosen);
  return isThere ? sight : { ...sight, chosen: board.tasks[0]?.task.view.task_id ?? null };
};

/** Owns the terminal until `stop`, also when the process ends in between. */
const openBoardScreen = (io: Io, read: () => Board): BoardScreen => {
  let sight: Sight = { page: 'board', chosen: null, top: 0 };
  let later: NodeJS.Timeout | null = null;
  let leave = (_code: number): void => {};
  const left = new Promise<number>((resolve) => {
    leave = resolve;
  });
  const draw = (): void => {
    later = null;
    const size = io.terminal();
    if (size === null) return;
    const board = read();
    sight = onBoard(board, sight);
    const lines: readonly Text[] = screenLines(board, sight, size);
    io.screen(lines.slice(0, size.rows));
  };
  const drawSoon = (): void => {
    later ??= setTimeout(draw, redrawBoardMs);
  };
  const onKeys = (sent: Buffer): void => {
    for (const key of keyPressesIn(sent.toString('utf8'))) {
      if (key === 'interrupt') leave(exitCodes.interrupted);
      if (key === 'quit') leave(exitCodes.done);
      sight = afterKey(read(), sight, key);
    }
    if (later !== null) clearTimeout(later);
    draw();
  };
  const onInterrupt = (): void => leave(exitCodes.interrupted);
  const onTerminate = (): void => leave(exitCodes.terminated);
  const close = (): void => io.screen(null);
  const clock = setInterval(drawSoon, boardClockMs);
  process.stderr.on('resize', drawSoon);
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onTerminate);
  process.on('SIGHUP', onTerminate);
  process.on('exit', close);
  process.stdin.setRawMode?.(true);
  process.stdin.on('data', onKeys);
  draw();
  return {
    changed: drawSoon,
    left,
    stop: () => {
      clearInterval(clock);
      if (later !== null) clearTimeout(later);
      process.stderr.off('resize', drawSoon);
      process.off('SIGINT', onInterrupt).off('SIGTERM', onTerminate).off('SIGHUP', onTerminate);
      process.off('exit', close);
      process.stdin.off('data', onKeys);
      process.stdin.setRawMode?.(false);
      process.stdin.pause();
      close();
    },
  };
};

/** The newest tasks, beside all that run or wait for a slot. */
const boardTasksAtMost = 5_000;

/** The tasks of the board, as the list and the stream tell of them. */
interface BoardTasks {
  see(frame: Frame): void;
  /** Reads the list again: no frame tells of a task that nobody ran yet. */
  load(io: Io): Promise<void>;
  ids(): readonly string[];
  board(): Board;
}

/** Newer sign of life first among those of equal urgency. */
const order = (one: BoardTask, other: BoardTask): number =>
  sections.indexOf(one.section) - sections.indexOf(other.section) ||
  // A question holds up an agent now.
  Number(one.task.view.status === 'failed') - Number(other.task.view.status === 'failed') ||
  (one.section === 'done' || one.section === 'review'
    ? other.task.seenAt - one.task.seenAt
    : one.task.view.created_at.localeCompare(other.task.view.created_at));

const workKey = ({ task_id, attempt }: TaskView): string => `${task_id} ${attempt}`;

export const createBoardTasks = (client: Client, progress: Progress): BoardTasks => {
  const ids = new Set<string>();
  /** By attempt: one that follows a merge has work of its own. */
  const works = new Map<string, TaskView['work']>();
  /** By task: their changes are no changes of the task. */
  const pulls = new Map<string, TaskView['pull_request']>();
  let unread = 0;
  const take = (view: TaskView): void => {
    const known = progress.get(view.task_id);
    if (known === null) progress.begin(view);
    else progress.refresh(view);
    ids.add(view.task_id);
    if (view.status === 'complete') works.set(workKey(view), view.work);
    pulls.set(view.task_id, view.pull_request);
  };
  const tasks = (): readonly TaskProgress[] => [...ids].flatMap((id) => progress.get(id) ?? []);
  const placed = (task: TaskProgress): BoardTask => {
    const work = works.get(workKey(task.view));
    const view = { ...task.view, pull_request: pulls.get(task.view.task_id) };
    return { task: { ...task, view }, work, section: sectionOf(view, work) };
  };
  const find = (taskId: string): BoardTask | null => {
    const task = progress.get(taskId);
    return task === null ? null : placed(task);
  };
  return {
    see: (frame) => {
      progress.take(frame);
      const { task, pull_request: found } = frame.data;
      if (frame.type === 'pullRequest' && typeof task === 'string')
        pulls.set(task, found as TaskView['pull_request']);
      if (progress.get(frame.task_id) !== null) ids.add(frame.task_id);
    },
    load: async (io) => {
      const active = await fetchTasks(client, io, { status: 'active' }, null);
      const newest = await fetchTasks(client, io, {}, boardTasksAtMost);
      for (const view of [...newest.tasks, ...active.tasks]) take(view);
      // A task that was deleted is in neither list.
      const listed = new Set([...newest.tasks, ...active.tasks].map(({ task_id }) => task_id));
      if (newest.more === 0) for (const id of ids) if (!listed.has(id)) ids.delete(id);
      unread = newest.more ?? 0;
    },
    ids: () => [...ids],
    board: () => ({ tasks: tasks().map(placed).toSorted(order), find, unread }),
  };
};

const reloadMs = 10_000;

/** Reads the list again at intervals, one reading at a time; the stream tells of a lost server. */
const reloadOften = (reload: () => Promise<void>, signal: AbortSignal): void => {
  let later: NodeJS.Timeout | undefined;
  const again = (): void => {
    if (signal.aborted) return;
    later = setTimeout(() => void reload().then(again, again), reloadMs);
  };
  signal.addEventListener('abort', () => clearTimeout(later), { once: true });
  again();
};

/** A board on a terminal that is kept up to date until somebody quits. */
const showBoard = async ({ io }: CommandContext, client: Client): Promise<number> => {
  const abort = new AbortController();
  const { signal } = abort;
  const tasks = createBoardTasks(client, createProgress());
  // The stream begins first, so that nothing is missed.
  const frames = client.frames(null, null, signal)[Symbol.asyncIterator]();
  let next = frames.next();
  await tasks.load(io);
  const screen = openBoardScreen(io, tasks.board);
  const reload = async (): Promise<void> => {
    await tasks.load(io);
    screen.changed();
  };
  const follow = async (): Promise<number> => {
    for (;;) {
      const { done, value } = await next;
      if (done === true) return exitCodes.done;
      tasks.see(value);
      screen.changed();
      next = frames.next();
    }
  };
  try {
    reloadOften(reload, signal);
    return await Promise.race([screen.left, follow()]);
  } finally {
    abort.abort();
    screen.stop();
  }
};

/** One line for each change, without end; with `--json` each frame. */
const printChanges = async ({ io, json }: CommandContext, client: Client): Promise<number> => {
  const abort = new AbortController();
  const progress = createProgress();
  const display = createDisplay({ io, json, progress, followed: () => [] });
  for await (const frame of client.frames(null, null, abort.signal)) {
    display.see(frame);
    await io.room();
  }
  return exitCodes.done;
};

/** `agent watch` */
export const watchBoard = async (context: CommandContext): Promise<number> => {
  const client = await context.connection.server();
  const isScreen = !context.json && context.io.terminal() !== null && process.stdin.isTTY === true;
  return isScreen ? showBoard(context, client) : printChanges(context, client);
};
