import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { renderTask } from '../output/render-task.ts';
import { styled, type Text, terminalText } from '../output/styled.ts';
import { cutToWidth } from '../output/width.ts';
import { wrap } from '../output/wrap.ts';
import { type KeyPress, keyHelp, keyPressesIn } from './keys.ts';
import { type Board, renderBoard } from './render-board.ts';

const redrawBoardMs = 200;
const boardClockMs = 1_000;

export interface BoardScreen {
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
export const openBoardScreen = (io: Io, read: () => Board): BoardScreen => {
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
